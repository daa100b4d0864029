import { execFile } from "node:child_process";
import {
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { parseCommand } from "../../services/gate/shell/parse-command.ts";
import type { ParsedCommand, SimpleCommand, Word } from "../../services/gate/shell/parsed-command.ts";
import { PROGRAM_TABLE } from "../../services/gate/shell/program-table.ts";
import type { BashParser } from "../../services/gate/shell/syntax-tree.ts";
import { readCorpus, readSpellings, wrapCommand } from "../corpus/commands/corpus.ts";

/**
 * bash itself says what a command line runs. Each command is run in an empty machine: a tree of its own as root
 * directory, a user without rights, no network, no other process in sight. Every program in it is a stub that writes
 * down how it was called; programs that start others, and small ones that write files, then do what they really do.
 */

const run = promisify(execFile);
const CWD = "/project";
const HOME = "/home/u";
const WRAPPINGS = 250;

/** Real programs behind the stubs. None of them can do more than write files below the three writable folders. */
const REAL =
  "bash dash env timeout nice ionice nohup setsid stdbuf xargs find flock chrt taskset time tee touch mkdir rmdir cp mv ln rm " +
  "dd truncate install chmod sed cat head tail seq sort wc tr cut grep ls basename dirname mktemp mawk uniq date sleep tar diff";

const STUB = `#!/real/dash
name=\${0##*/}
printf '%s\\0' "$name" "$@" "--end-of-call--" >> /log/calls
case $name in
  sudo | doas)
    while :; do
      case $1 in
        -u | -g | -p | -h) shift 2 ;;
        --) shift; break ;;
        -*) shift ;;
        *=*) export "$1"; shift ;;
        *) break ;;
      esac
    done
    [ $# -gt 0 ] && exec "$@"
    exit 0 ;;
  busybox | toybox)
    [ $# -gt 0 ] && exec "$@"
    exit 0 ;;
  sh) exec /real/dash "$@" ;;
  zsh | ksh | ash) exec /real/bash "$@" ;;
  awk) exec /real/mawk "$@" ;;
esac
[ -x "/real/$name" ] && exec "/real/$name" "$@"
exit 0
`;

type Recording = {
  readonly text: string;
  readonly calls: readonly (readonly string[])[];
  readonly changed: readonly string[];
};

/** One root directory with stubs; commands run in it one after the other. */
class EmptyMachine {
  readonly root: string;
  readonly elevate: readonly string[];
  private constructor(root: string, elevate: readonly string[]) {
    this.root = root;
    this.elevate = elevate;
  }

  static async build(programs: ReadonlySet<string>): Promise<EmptyMachine> {
    const root = await mkdtemp(join(tmpdir(), "shell-oracle-"));
    await chmod(root, 0o755);
    for (const folder of [
      "real",
      "usr/bin",
      "usr/local/bin",
      "dev",
      "proc",
      "log",
      "tmp",
      "home",
      "lib",
      "lib64",
      "etc",
    ])
      await mkdir(join(root, folder), { recursive: true });
    await symlink("usr/bin", join(root, "bin"));
    await symlink("/proc/self/fd", join(root, "dev/fd"));
    await symlink("/proc/self/fd/0", join(root, "dev/stdin"));
    await symlink("/proc/self/fd/1", join(root, "dev/stdout"));
    await symlink("/proc/self/fd/2", join(root, "dev/stderr"));
    await writeFile(join(root, "dev/null"), "");
    await chmod(join(root, "dev/null"), 0o666);
    for (const name of REAL.split(" ")) {
      const file = ["/usr/bin", "/bin"].map((folder) => join(folder, name));
      for (const source of file) {
        try {
          await copyFile(source, join(root, "real", name));
        } catch {
          continue;
        }
        const { stdout } = await run("ldd", [source]).catch(() => ({ stdout: "" }));
        for (const [library] of stdout.matchAll(/\/\S+\.so[^\s:]*/g)) {
          await mkdir(join(root, dirname(library)), { recursive: true });
          await copyFile(library, join(root, library));
        }
        break;
      }
    }
    await run("sh", [
      "-c",
      `for f in /usr/lib*/coreutils/libstdbuf.so /usr/libexec/coreutils/libstdbuf.so; do [ -f "$f" ] && mkdir -p "$1/\${f%/*}" && cp "$f" "$1/$f"; done; true`,
      "sh",
      root,
    ]);
    await writeFile(join(root, "log/stub"), STUB, { mode: 0o755 });
    await mkdir(join(root, "stub"));
    await copyFile(join(root, "log/stub"), join(root, "stub/program"));
    await rm(join(root, "log/stub"));
    await chmod(join(root, "stub/program"), 0o755);
    for (const name of programs)
      await link(join(root, "stub/program"), join(root, "usr/bin", name)).catch(() => undefined);
    // Whoever may not enter namespaces as it is takes a user namespace, or asks sudo as CI runners may.
    for (const elevate of [[], ["sudo", "-n"]]) {
      const machine = new EmptyMachine(root, elevate);
      const { calls } = await machine.record("touch probe");
      if (calls.some(([name]) => name === "touch")) return machine;
    }
    throw new Error(
      "cannot build the empty machine: run as root, or allow user namespaces or sudo without a password",
    );
  }

  /** Nobody; below sudo the user who runs the tests, so that what is written can be removed again. */
  private get user(): string {
    return this.elevate.length > 0 ? `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}` : "65534:65534";
  }

  async record(text: string): Promise<Recording> {
    const { root } = this;
    const writable = ["project", "tmp", "home/u", "log"].map((folder) => join(root, folder));
    for (const folder of writable) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true });
      await chmod(folder, 0o777);
    }
    await writeFile(join(root, "log/calls"), "", { mode: 0o666 });
    await chmod(join(root, "log/calls"), 0o666);
    await fillProject(join(root, "project"));
    const before = await this.snapshot();
    const asRoot = process.getuid?.() === 0 || this.elevate.length > 0;
    const inside = [
      ...(asRoot ? ["chroot", `--userspec=${this.user}`, root] : ["chroot", root]),
      "/real/env",
      "-i",
      `HOME=${HOME}`,
      "PATH=/usr/bin:/bin",
      "LC_ALL=C.UTF-8",
      "/real/timeout",
      "-k",
      "1",
      "2",
      "/real/bash",
      "-c",
      `cd ${CWD}; ulimit -t 2 -f 20480; eval "$1"`,
      "bash",
      text,
    ];
    const namespaces = [
      "unshare",
      ...(asRoot ? [] : ["-r"]),
      "-m",
      "-p",
      "-n",
      "-f",
      "--kill-child",
      `--mount-proc=${join(root, "proc")}`,
    ];
    const [program = "", ...args] = [...this.elevate, ...namespaces, ...inside];
    await new Promise<void>((done) => {
      const child = execFile(
        program,
        args,
        { timeout: 6_000, killSignal: "SIGKILL", maxBuffer: 1 << 22 },
        () => done(),
      );
      child.stdin?.on("error", () => undefined);
      child.stdin?.end();
    });
    const calls: string[][] = [];
    let call: string[] = [];
    for (const word of (await readFile(join(root, "log/calls"), "utf8")).split("\0")) {
      if (word === "--end-of-call--") {
        calls.push(call);
        call = [];
      } else call.push(word);
    }
    const after = await this.snapshot();
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path) !== after.get(path),
    );
    return { text, calls, changed: changed.sort() };
  }

  private async snapshot(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    const folders = ["project", "tmp", "home/u"];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
      for (const name of await readdir(join(this.root, folder))) {
        const path = join(folder, name);
        const status = await lstat(join(this.root, path), { bigint: true });
        if (status.isDirectory()) folders.push(path);
        const content = status.isDirectory()
          ? ""
          : `${status.size} ${status.mtimeNs} ${status.isSymbolicLink() ? await readlink(join(this.root, path)) : ""}`;
        found.set(`/${path}`, `${status.ino} ${status.mode} ${content}`);
      }
    return found;
  }

  async clear(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}

/** What a working directory may hold: names that the corpus uses. */
async function fillProject(folder: string): Promise<void> {
  for (const name of [
    "a",
    "b",
    "c.txt",
    "x",
    "y",
    "list",
    "in.txt",
    "src/main.ts",
    "src/a.o",
    "sub/deep/file",
    "build/out.o",
    "old.log",
    "Makefile",
    "package.json",
    "a b",
  ]) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), `${basename(name)}\nsecond line\n`);
  }
  await run("chmod", ["-R", "a+rwX", folder]);
  if (process.getuid?.() === 0) await run("chown", ["-R", "65534:65534", folder]);
}

/** What the parse does not account for: programs that ran, or paths that changed. Nothing, when it is opaque. */
function judge({ calls, changed }: Recording, parsed: ParsedCommand): string[] {
  if (parsed.opaque.length > 0) return [];
  const ran = calls.filter(
    (call) => !parsed.commands.some((command) => couldBe(command, call)) && !isStartOfCode(call, parsed),
  );
  const written = changed.filter(
    (path) =>
      !parsed.writes.some(
        (write) =>
          write.path === path ||
          (write.extent === "tree" && `${path}/`.startsWith(write.path === "/" ? "/" : `${write.path}/`)),
      ),
  );
  return [...ran.map((call) => `ran ${JSON.stringify(call)}`), ...written.map((path) => `wrote ${path}`)];
}

/** Code in an option, as `tar --to-command` takes it, is started through `sh -c`: its own commands are what counts. */
function isStartOfCode([name, flag, code]: readonly string[], parsed: ParsedCommand): boolean {
  if (name !== "sh" || flag !== "-c" || code === undefined) return false;
  return parsed.commands.some(({ argv }) =>
    argv.some((word) => word.kind === "literal" && word.text.endsWith(code)),
  );
}

function couldBe(command: SimpleCommand, [name, ...args]: readonly string[]): boolean {
  return command.program === name && fits(command.argv, args);
}

/** Literal words are themselves, words that are not fixed are any number of words. */
function fits(words: readonly Word[], args: readonly string[]): boolean {
  let reachable = new Set([0]);
  for (const word of words) {
    const next = new Set<number>();
    for (const at of reachable) {
      if (word.kind === "literal" && args[at] === word.text) next.add(at + 1);
      if (word.kind === "unresolved") for (let to = at; to <= args.length; to += 1) next.add(to);
    }
    reachable = next;
  }
  return reachable.has(args.length);
}

describe("what bash really runs", () => {
  let parser: BashParser;
  const machines: EmptyMachine[] = [];
  const recordings: Recording[] = [];
  const corpus = readCorpus().filter(({ runnable }) => runnable !== false);
  const parse = (text: string): ParsedCommand => parseCommand(parser, text, { cwd: CWD, home: HOME });

  beforeAll(async () => {
    parser = await loadBashParser();
    // An opaque parse promises nothing: only the others are put to bash.
    const isClear = (text: string): boolean => parse(text).opaque.length === 0;
    const random = fc.sample(
      fc.tuple(fc.constantFrom(...corpus), fc.array(fc.nat({ max: 1_000 }), { minLength: 1, maxLength: 4 })),
      { seed: 20, numRuns: WRAPPINGS },
    );
    const texts = [
      ...corpus.map(({ text }) => text),
      ...readSpellings(),
      ...random.map(([{ text }, layers]) => wrapCommand(text, layers).text),
    ].filter(isClear);
    const words = new Set([
      ...PROGRAM_TABLE.keys(),
      ...texts.flatMap((text) => text.match(/[A-Za-z0-9_][\w.+-]*/g) ?? []),
    ]);
    for (let count = 0; count < 2; count += 1) machines.push(await EmptyMachine.build(words));
    let at = 0;
    await Promise.all(
      machines.map(async (machine) => {
        for (let text = texts[at++]; text !== undefined; text = texts[at++])
          recordings.push(await machine.record(text));
      }),
    );
  }, 600_000);
  afterAll(async () => {
    for (const machine of machines) await machine.clear();
  });

  it("is in the parse, program by program and path by path, or the parse is opaque", () => {
    const missed = recordings.flatMap((recording) =>
      judge(recording, parse(recording.text)).map((miss) => `${recording.text}  ⇒  ${miss}`),
    );
    expect(missed).toEqual([]);
  });

  it("was recorded for most commands", () => {
    expect(recordings.length).toBeGreaterThan(600);
    expect(recordings.filter(({ calls }) => calls.length > 0).length).toBeGreaterThan(recordings.length / 2);
    expect(recordings.filter(({ changed }) => changed.length > 0).length).toBeGreaterThan(200);
  });

  it("exposes a parser that misses substitutions", () => {
    const isBroken = ({ within }: SimpleCommand): boolean => within.includes("substitution");
    const caught = recordings.filter((recording) => {
      const parsed = parse(recording.text);
      return (
        judge(recording, { ...parsed, commands: parsed.commands.filter((command) => !isBroken(command)) })
          .length > 0
      );
    });
    expect(caught.length).toBeGreaterThan(5);
  });

  it("exposes a parser that misses what wrappers start, and one that misses redirections", () => {
    const withoutWrapped = recordings.filter((recording) => {
      const parsed = parse(recording.text);
      return (
        judge(recording, {
          ...parsed,
          commands: parsed.commands.filter(({ wrappers }) => wrappers.length === 0),
        }).length > 0
      );
    });
    const withoutRedirects = recordings.filter((recording) => {
      const parsed = parse(recording.text);
      return (
        judge(recording, { ...parsed, writes: parsed.writes.filter(({ by }) => !by.includes(">")) }).length >
        0
      );
    });
    expect(withoutWrapped.length).toBeGreaterThan(5);
    expect(withoutRedirects.length).toBeGreaterThan(5);
  });
});
