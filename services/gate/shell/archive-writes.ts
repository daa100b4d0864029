import { scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import type { Writes } from "./writes.ts";
import { toText } from "./writes.ts";

/** Wherever the names in an archive lead. */
const fromArchive: Word = {
  kind: "unresolved",
  reason: "variable",
  source: "(names in the archive)",
  prefix: "",
};

/** `tar xfC a.tar dir` as `tar -x -f a.tar -C dir`: letters with a value take the next words in their order. */
function toNewStyle(args: readonly Word[]): readonly Word[] {
  const first = args[0]?.kind === "literal" ? args[0].text : "";
  if (!/^[A-Za-z]+$/.test(first)) return args;
  const values = args.slice(1);
  const options = [...first].flatMap((letter): Word[] => {
    const option: Word = { kind: "literal", text: `-${letter}` };
    const value = /[fCTXbgIFKLNVH]/.test(letter) ? values.shift() : undefined;
    return value === undefined ? [option] : [option, value];
  });
  return [...options, ...values];
}

/** What one name of an archive becomes below the folder that it is laid out in. */
function toMember(folder: Word | undefined, member: Word): Word {
  const start = folder === undefined ? "" : `${toText(folder)}/`;
  const text = `${start}${toText(member).replace(/^\/+/, "")}`;
  if (member.kind === "literal" && folder?.kind !== "unresolved")
    return /[*?[]/.test(member.text)
      ? { kind: "unresolved", reason: "glob", source: text, prefix: text.replace(/[*?[][\s\S]*$/, "") }
      : { kind: "literal", text };
  return member.kind === "unresolved" && folder === undefined
    ? member
    : { kind: "unresolved", reason: "variable", source: text, prefix: "" };
}

/** Where programs lay out what stands in an archive, and which archive they change. */
export const ARCHIVE_WRITES: readonly (readonly [string, Writes])[] = [
  [
    "cpio",
    (args, write, here) => {
      const { options, operands } = scanAllOptions(args, "-D -O -F -E -H -C -R --directory --file --format");
      const value = (pattern: RegExp): Word | undefined =>
        options.find(({ name }) => pattern.test(name))?.value;
      const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
      const archive = value(/^-O$/) ?? (has(/^(-o|--create)$/) ? value(/^(-F|--file)$/) : undefined);
      if (archive !== undefined) write(archive, "file");
      if (has(/^(-i|--extract)$/) && !has(/^(-t|--list)$/)) {
        write(value(/^(-D|--directory)$/) ?? here, "tree");
        // Absolute names in the archive are taken as they are.
        if (!has(/^--no-absolute-filenames$/)) write(fromArchive, "tree");
      }
      const target = operands.at(-1);
      if (has(/^(-p|--pass-through)$/) && target !== undefined) write(target, "tree");
    },
  ],
  [
    "jar",
    (args, write, here) => {
      const [mode, file] = args;
      const { options } = scanAllOptions(args, "-C --dir -f --file");
      if (options.some(({ name }) => name === "--extract" || name === "-x" || name === "--dir"))
        write(options.find(({ name }) => name === "--dir")?.value ?? here, "tree");
      for (const { name, value } of options)
        if (name === "-C" && value !== undefined && mode !== undefined && /x/.test(toText(mode)))
          write(value, "tree");
      if (mode?.kind !== "literal" || !/^-?[a-zA-Z0]+$/.test(mode.text)) return;
      if (mode.text.includes("x")) write(here, "tree");
      if (/[cu]/.test(mode.text) && mode.text.includes("f") && file !== undefined) write(file, "file");
    },
  ],
  [
    "ar",
    (args, write, here) => {
      const { options, operands } = scanAllOptions(args, "--output");
      const mode = args.map(toText).find((text) => !text.startsWith("--")) ?? "";
      if (!mode.replace(/^-/, "").startsWith("x") && !options.some(({ name }) => name === "-x")) return;
      if (operands.length > 0) write(options.find(({ name }) => name === "--output")?.value ?? here, "tree");
    },
  ],
  ...["dpkg", "dpkg-deb"].map((name): [string, Writes] => [
    name,
    (args, write) => {
      const { options, operands } = scanAllOptions(args, "");
      if (options.some((one) => /^(-[xXR]|--extract|--vextract|--raw-extract)$/.test(one.name)))
        write(operands[1] ?? fromArchive, "tree");
    },
  ]),
  [
    "pax",
    (args, write, here) => {
      const { options, operands } = scanAllOptions(args, "-f -s -o -x -b");
      const has = (letter: string): boolean => options.some(({ name }) => name === letter);
      if (!has("-r")) {
        const file = options.find(({ name }) => name === "-f")?.value;
        if (has("-w") && file !== undefined) write(file, "file");
        return;
      }
      write(has("-w") ? (operands.at(-1) ?? here) : here, "tree");
      // Names are changed on the way, or absolute.
      write(fromArchive, "tree");
    },
  ],
  [
    "tar",
    (args, write, here) => {
      const rest = toNewStyle(args);
      const { options, operands } = scanAllOptions(
        rest,
        "-f -C -T -X -b -I -F -g --file --directory --files-from --exclude-from --one-top-level --transform --xform",
      );
      const isBsd = options.some(
        ({ value }) => value?.kind === "literal" && /^([,/|#@]).*\1.*\1/.test(value.text),
      );
      const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
      const file = options.find(({ name }) => /^(-f|--file)$/.test(name))?.value;
      if (has(/^(-x|--extract|--get)$/)) {
        const folder = options.filter(({ name }) => /^(-C|--directory)$/.test(name)).at(-1)?.value;
        if (!has(/^(-O|--to-stdout)$/)) {
          write(folder ?? here, "tree");
          for (const member of operands) write(toMember(folder, member), "tree");
        }
        // Names in the archive are taken as they are, or changed on the way.
        if (has(/^(-P|--absolute-names)$/)) write({ kind: "literal", text: "/" }, "tree");
        if (has(/^(--transform|--xform)$/) || options.some(({ name }) => name === "-s" && isBsd))
          write({ kind: "unresolved", reason: "variable", source: "--transform", prefix: "" }, "tree");
      }
      if (
        has(/^(-c|-r|-u|-A|--create|--append|--update|--delete)$/) &&
        file !== undefined &&
        !(file.kind === "literal" && file.text === "-")
      )
        write(file, "file");
    },
  ],
  [
    "unzip",
    (args, write, here) => {
      const { options, operands } = scanAllOptions(args, "-d -P");
      if (options.some(({ name }) => /^-[lptvz]$/.test(name))) return;
      // `-:` takes names that climb.
      if (args.some((word) => /^-\w*:/.test(toText(word)))) write(fromArchive, "tree");
      const folder = options.find(({ name }) => name === "-d")?.value;
      write(folder ?? here, "tree");
      for (const member of operands.slice(1)) write(toMember(folder, member), "tree");
    },
  ],
  ...["7z", "7za", "7zr"].map((name): [string, Writes] => [
    name,
    (args, write, here) => {
      const { options, operands } = scanAllOptions(args, "-o -p -w");
      if (!/^[xe]$/.test(operands[0] === undefined ? "" : toText(operands[0]))) return;
      const folder = options.find(({ name }) => name === "-o")?.value;
      write(folder ?? here, "tree");
      for (const member of operands.slice(2)) write(toMember(folder, member), "tree");
    },
  ]),
];
