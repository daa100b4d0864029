import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import type { Writes } from "./writes.ts";

const literal = (text: string): Word => ({ kind: "literal", text });
const textOf = (word: Word | undefined): string => (word?.kind === "literal" ? word.text : "");

/** Values of `-name=value`, `--name=value` and `--name value`, by the pattern of the name without dashes. */
function valuesOf(args: readonly Word[], name: string): readonly Word[] {
  const option = new RegExp(`^--?(?:${name})(?:=([\\s\\S]*))?$`);
  return args.flatMap((word, at) => {
    const found = option.exec(word.kind === "literal" ? word.text : word.prefix);
    if (found === null) return [];
    const value = found[1] === undefined ? args[at + 1] : word.kind === "literal" ? literal(found[1]) : word;
    return value === undefined ? [] : [value];
  });
}

/** `type=local,dest=out` as `out`. */
const toDestination = (word: Word): Word =>
  word.kind === "literal" ? literal(/(?:^|,)dest=([^,]*)/.exec(word.text)?.[1] ?? word.text) : word;

const container: Writes = (args, write) => {
  const { operands } = scanAllOptions(args, "-c -H --context --host --log-level");
  const verbs = operands.map(textOf);
  const at = verbs[0] === "cp" ? 1 : verbs[1] === "cp" ? 2 : 0;
  const target = operands[at + 1];
  if (at > 0 && target !== undefined && !/^[^/.~]+:/.test(verbs[at + 1] ?? "")) write(target, "tree");
  // Behind these the words are those of a program in the container.
  if (verbs.slice(0, 2).some((verb) => /^(?:run|exec|create)$/.test(verb))) return;
  for (const value of valuesOf(args, "o|output|iidfile|metadata-file"))
    if (textOf(value) !== "-") write(toDestination(value), "tree");
};

const terraform: Writes = (args, write) => {
  for (const value of valuesOf(args, "out|state|state-out|backup|generate-config-out")) write(value, "file");
};

const helm: Writes = (args, write) => {
  for (const value of valuesOf(args, "output-dir|destination|untardir|d")) write(value, "tree");
};

const kubectl: Writes = (args, write) => {
  for (const value of valuesOf(args, "output-directory|cache-dir")) write(value, "tree");
};

const aws: Writes = (args, write) => {
  const { operands } = scanAllOptions(args, "--profile --region --output --endpoint-url --ca-bundle --query");
  const verbs = operands.map(textOf);
  const last = args.at(-1);
  if (verbs[0] === "s3api" && /^get-object(?:-torrent)?$/.test(verbs[1] ?? "") && last !== undefined)
    write(last, "file");
  const target = operands[3];
  if (verbs[0] === "s3" && /^(?:cp|mv|sync)$/.test(verbs[1] ?? "") && target !== undefined)
    if (!/^(?:s3:\/\/|-$)/.test(textOf(target))) write(target, "tree");
};

/** `python -m` with a module of the standard library that writes where it is told. */
const pythonModule: Writes = (args, write, here) => {
  const at = args.findIndex((word) => textOf(word) === "-m");
  if (at < 0) return;
  const rest = args.slice(at + 2);
  const [mode, ...named] = rest;
  switch (textOf(args[at + 1])) {
    case "zipfile":
    case "tarfile":
      if (/^(?:-e|--extract)$/.test(textOf(mode))) write(named[1] ?? here, "tree");
      if (/^(?:-c|--create)$/.test(textOf(mode)) && named[0] !== undefined) write(named[0], "file");
      return;
    case "venv":
    case "virtualenv":
      for (const word of scanAllOptions(rest, "--prompt -p --python").operands) write(word, "tree");
      return;
    case "json.tool": {
      const output = scanAllOptions(rest, "--indent").operands[1];
      if (output !== undefined) write(output, "file");
    }
  }
};

/** Writes of clients of infrastructure, and of modules that an interpreter is told by name. */
export const CLIENT_WRITES: readonly (readonly [string, Writes])[] = [
  ...["docker", "podman", "nerdctl", "buildah"].map((name) => [name, container] as const),
  ...["terraform", "tofu", "terragrunt"].map((name) => [name, terraform] as const),
  ["helm", helm],
  ...["kubectl", "oc"].map((name) => [name, kubectl] as const),
  ["aws", aws],
  ...["python", "python2", "python3", "pypy", "pypy3"].map((name) => [name, pythonModule] as const),
];
