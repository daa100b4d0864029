import { ARCHIVE_WRITES } from "./archive-writes.ts";
import { CLIENT_WRITES } from "./client-writes.ts";
import { toFdCommands, toFdRoots } from "./found-by-fd.ts";
import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import type { Writes } from "./writes.ts";
import { toText } from "./writes.ts";

const CMAKE_WRITES =
  /^(rm|remove|remove_directory|touch|copy|copy_if_different|copy_directory|rename|make_directory|create_symlink|create_hardlink)$/;

/** Commands that end, empty or change what they are given. */
const ENDS_FILES =
  /^(?:\S+ )*(?:\S*\/)?(?:rm|rmdir|unlink|shred|mv|truncate|chmod|chown|chgrp|sed -i\S*|tee)(?: |$)/;

/** Programs whose words are no plain list of options and operands. */
export const PROGRAM_WRITES: ReadonlyMap<string, Writes> = new Map<string, Writes>([
  ...ARCHIVE_WRITES,
  [
    "cmake",
    (args, write) => {
      const [mode, verb, ...rest] = args;
      if (mode?.kind !== "literal" || mode.text !== "-E" || verb?.kind !== "literal") return;
      if (!CMAKE_WRITES.test(verb.text)) return;
      const { operands } = scanAllOptions(rest, "");
      (/^(copy|create)/.test(verb.text) ? operands.slice(-1) : operands).forEach((word) =>
        write(word, "tree"),
      );
    },
  ],
  ...["fd", "fdfind"].map((name): [string, Writes] => [
    name,
    (args, write) => {
      // What is found below is gone afterwards, or another.
      const isEnding = toFdCommands(args).some(({ words }) => ENDS_FILES.test(words.map(toText).join(" ")));
      if (isEnding) toFdRoots(args).forEach((root) => write(root, "tree"));
    },
  ]),
  [
    "yq",
    (args, write, here) => {
      // Each document into a file whose name an expression makes; a number alone stays in the folder.
      const { options } = scanAllOptions(args, "-s --split-exp -o -p --output-format --input-format --arg");
      for (const { name, value } of options)
        if (/^(-s|--split-exp)$/.test(name))
          write(
            value?.kind === "literal" && /^(?:"[\w-]+"\s*\+\s*)?\$index$/.test(value.text.trim())
              ? here
              : { kind: "unresolved", reason: "variable", source: "(names in the document)", prefix: "" },
            "tree",
          );
    },
  ],
  [
    "protoc",
    (args, write) => {
      for (const { name, value } of scanAllOptions(args, "-I --proto_path").options)
        if (value?.kind === "literal" && /_out$/.test(name))
          write({ kind: "literal", text: value.text.replace(/^[^/.~]*:/, "") }, "tree");
    },
  ],
  ...CLIENT_WRITES,
  [
    "dd",
    (args, write) => {
      for (const word of args) {
        const text = word.kind === "literal" ? word.text : word.source;
        if (!/^"?of=/.test(text)) {
          if (word.kind === "unresolved" && word.prefix === "") write(word, "file");
          continue;
        }
        if (word.kind === "literal") write({ kind: "literal", text: word.text.slice(3) }, "file");
        else write({ ...word, source: word.source.slice(3), prefix: word.prefix.slice(3) }, "file");
      }
    },
  ],
  [
    "flock",
    (args, write) => {
      const { operands } = scanAllOptions(args, "-E -w -c --conflict-exit-code --timeout --wait --command");
      const [lock] = operands;
      if (lock !== undefined && !(lock.kind === "literal" && /^\d+$/.test(lock.text))) write(lock, "file");
    },
  ],
  [
    "mktemp",
    (args, write) => {
      const { options, operands } = scanAllOptions(args, "-p --suffix");
      const folder = options.find(({ name }) => /^(-p|--tmpdir)$/.test(name))?.value;
      const [template] = operands;
      if (template?.kind === "unresolved") write(template, "tree");
      else if (template === undefined || folder !== undefined || options.some(({ name }) => name === "-t"))
        write(folder ?? { kind: "literal", text: "/tmp" }, "tree");
      else write({ kind: "literal", text: template.text.replace(/[^/]*$/, "") || "." }, "tree");
    },
  ],
  [
    "find",
    (args, write, here) => {
      const roots: Word[] = [];
      for (const word of args) {
        if (word.kind === "literal" && /^[-(!,)]/.test(word.text)) break;
        roots.push(word);
      }
      const isDeleting = args.some((word) => word.kind === "literal" && word.text === "-delete");
      if (isDeleting) (roots.length === 0 ? [here] : roots).forEach((word) => write(word, "tree"));
      args.forEach((word, index) => {
        const target = args[index + 1];
        if (
          word.kind === "literal" &&
          /^-(fprint|fprint0|fprintf|fls)$/.test(word.text) &&
          target !== undefined
        )
          write(target, "file");
      });
    },
  ],
  [
    "curl",
    (args, write, here) => {
      const { options } = scanAllOptions(
        args,
        "-o -d -H -X -u -A -e -b -c -F -T -m -w -x -K --output --data --header --request --user --write-out",
      );
      if (options.some(({ name }) => /^(-O|--remote-name|--remote-name-all|-J)$/.test(name)))
        write(here, "tree");
      for (const { name, value } of options)
        if (/^(-w|--write-out)$/.test(name) && value?.kind === "literal")
          for (const [, file = ""] of value.text.matchAll(/%output\{(?:>>)?([^}]*)\}/g))
            write({ kind: "literal", text: file }, "file");
    },
  ],
  [
    "wget",
    (args, write, here) => {
      const { options } = scanAllOptions(
        args,
        "-O -P -o -a -U -t -T -i --output-document --directory-prefix",
      );
      if (
        !options.some(({ name }) =>
          /^(-O|-P|--output-document|--directory-prefix|--spider|--version|--help)$/.test(name),
        ) &&
        args.length > 0
      )
        write(here, "tree");
    },
  ],
  [
    "git",
    (args, write, here) => {
      const verbAt = args.findIndex((word) => word.kind === "literal" && word.text === "clone");
      if (verbAt === -1 || args.slice(0, verbAt).some((word) => word.kind !== "literal")) return;
      if (
        args
          .slice(0, verbAt)
          .some((word) => word.kind === "literal" && !word.text.startsWith("-") && !word.text.includes("="))
      )
        return;
      const { operands } = scanAllOptions(
        args.slice(verbAt + 1),
        "-b -o -c -j -u --branch --origin --depth --config --reference --template --upload-pack --filter --jobs --separate-git-dir",
      );
      const [from, to] = operands;
      if (from === undefined) return;
      const name =
        from.kind === "literal"
          ? from.text
              .replace(/\/+$/, "")
              .replace(/\.git$/, "")
              .replace(/^.*[/:]/, "")
          : "";
      write(to ?? (name === "" ? here : { kind: "literal", text: name }), "tree");
    },
  ],
]);
