import type { Risk, Where } from "./parsed-command.ts";
import { EVERYDAY } from "./plain-programs.ts";

/**
 * How a program takes another command. Options are given as blank-separated names; an option that is in neither list
 * makes the command opaque, because it might take the next word as its value.
 */
export type LaunchShape = {
  /** `words`: the rest is a command. `joined`: the rest, joined by blanks, is a script. `code`: only an option carries code. */
  readonly takes: "words" | "joined" | "code";
  readonly flags: string;
  readonly values: string;
  /** Operands in front of the command: the duration of `timeout`, the file of `flock`. */
  readonly positionals?: number;
  /** Operands of the form `NAME=value` in front of the command are its environment. */
  readonly takesAssignments?: boolean;
  /** Options whose value is a script, run by a shell. */
  readonly code?: string;
  /** Options after which nothing is run: `command -v`. */
  readonly queries?: string;
  /** What runs when no command follows: a shell of its own, or nothing. */
  readonly alone?: "shell" | "nothing";
  readonly where?: Where;
  /** The rest runs in this shell, so that its `cd` counts. */
  readonly isSameShell?: boolean;
  /** Words from the input are appended, or stand where the option's value stands. */
  readonly appendsInput?: boolean;
  /** `-5` is a flag too. */
  readonly takesNumbers?: boolean;
  /** Options that change the directory of what runs. */
  readonly directory?: string;
};

export type ProgramEntry = { readonly risk: Risk; readonly launch?: LaunchShape };

const launcher = (launch: Partial<LaunchShape>, risk: Risk = "launcher"): ProgramEntry => ({
  risk,
  launch: { takes: "words", flags: "", values: "", alone: "nothing", ...launch },
});

/** Programs that run another command, with the shape of their command line. */
const LAUNCHERS: Readonly<Record<string, ProgramEntry>> = {
  env: launcher({
    flags: "-i --ignore-environment -0 --null -v --debug - --list-signal-handling",
    values: "-u --unset -C --chdir -a --argv0",
    takesAssignments: true,
    directory: "-C --chdir",
  }),
  sudo: launcher(
    {
      flags:
        "-A -b -B -E -H -K -k -n -N -P -S -s -i -v -V --askpass --background --preserve-env --set-home --non-interactive --stdin --shell --login --validate --reset-timestamp --remove-timestamp --preserve-groups --no-update",
      values:
        "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --close-from --chdir --chroot --role --type --command-timeout --other-user",
      queries: "-l --list -e --edit",
      takesAssignments: true,
      directory: "-D -R --chdir --chroot",
    },
    "privilege",
  ),
  doas: launcher({ flags: "-n -s -L", values: "-u -C -a" }, "privilege"),
  pkexec: launcher({ flags: "--disable-internal-agent --keep-cwd", values: "--user" }, "privilege"),
  timeout: launcher({
    flags: "-v -p -f --foreground --preserve-status --verbose",
    values: "-k -s --kill-after --signal",
    positionals: 1,
  }),
  nice: launcher({ values: "-n --adjustment", takesNumbers: true }),
  ionice: launcher({ flags: "-t --ignore", values: "-c -n -p -P -u --class --classdata" }),
  chrt: launcher({ flags: "-b -f -i -o -r -d -R -a -v", values: "-T -P -D", positionals: 1 }),
  taskset: launcher({ flags: "-a -c --cpu-list --all-tasks", positionals: 1 }),
  nohup: launcher({}),
  setsid: launcher({ flags: "-c -f -w --ctty --fork --wait" }),
  stdbuf: launcher({ values: "-i -o -e --input --output --error" }),
  time: launcher({
    flags: "-p -v -a -q --portability --verbose --append --quiet",
    values: "-f -o --format --output",
    isSameShell: true,
  }),
  command: launcher({ flags: "-p", queries: "-v -V", isSameShell: true }),
  builtin: launcher({ isSameShell: true }),
  exec: launcher({ flags: "-c -l", values: "-a" }),
  coproc: launcher({}),
  xargs: launcher({
    flags: "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty",
    values:
      "-a -d -E -I -L -n -P -s -R -J -S --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var",
    appendsInput: true,
  }),
  busybox: launcher({ queries: "--list --list-full --help" }),
  toybox: launcher({ queries: "--long --help --version" }),
  eval: launcher({ takes: "joined", isSameShell: true }),
  watch: launcher({
    takes: "joined",
    flags:
      "-b -c -C -d -e -g -t -w -x -p --beep --color --no-color --differences --errexit --chgexit --no-title --no-wrap --precise --exec",
    values: "-n -q --interval --equexit",
  }),
  ssh: launcher(
    {
      takes: "joined",
      flags: "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
      values: "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
      positionals: 1,
      where: "remote",
    },
    "network",
  ),
  su: launcher(
    {
      takes: "code",
      flags: "- -l --login -m -p --preserve-environment -f --fast -P --pty",
      values: "-g -G -s -w --group --supp-group --shell --whitelist-environment",
      code: "-c --command --session-command",
      alone: "shell",
    },
    "privilege",
  ),
  runuser: launcher(
    {
      flags: "- -l --login -m -p --preserve-environment -f --fast -P --pty",
      values: "-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment",
      code: "-c --command --session-command",
      alone: "shell",
    },
    "privilege",
  ),
  unshare: launcher(
    {
      flags:
        "-m -u -i -n -p -U -C -T -f -r -c --mount --uts --ipc --net --pid --user --cgroup --time --fork --map-root-user --map-current-user --keep-caps --mount-proc --kill-child",
      values: "-R -w -S -G --root --wd --setuid --setgid --propagation --setgroups --map-user --map-group",
      alone: "shell",
      directory: "-R -w --root --wd",
    },
    "privilege",
  ),
  nsenter: launcher(
    {
      flags:
        "-a -m -u -i -n -p -U -C -T -F -Z --all --mount --uts --ipc --net --pid --user --cgroup --time --no-fork --preserve-credentials",
      values: "-t -S -G --target --setuid --setgid",
      alone: "shell",
      where: "container",
    },
    "privilege",
  ),
  chroot: launcher(
    {
      flags: "--skip-chdir",
      values: "--userspec --groups",
      positionals: 1,
      alone: "shell",
      where: "container",
    },
    "privilege",
  ),
  script: launcher({
    takes: "code",
    flags: "-a -e -f -q --append --return --flush --quiet --force",
    values:
      "-E -I -O -B -T -m -o --echo --log-in --log-out --log-io --log-timing --logging-format --output-limit",
    code: "-c --command",
    alone: "shell",
  }),
  flock: launcher({
    flags: "-e -F -n -o -s -u -x --exclusive --no-fork --nonblock --nb --close --shared --unlock --verbose",
    values: "-E -w --conflict-exit-code --timeout --wait",
    positionals: 1,
    code: "-c --command",
  }),
  strace: launcher({
    flags: "-c -C -d -D -f -F -h -i -k -n -q -r -t -tt -T -v -V -x -xx -y -yy -z -Z",
    values: "-a -b -e -E -I -o -O -p -P -s -S -u -U -X",
  }),
  ltrace: launcher({ flags: "-c -C -f -i -L -r -S -t -T", values: "-a -A -D -e -l -n -o -p -s -u -w -x" }),
  caffeinate: launcher({ flags: "-d -i -m -s -u", values: "-t -w" }),
  fakeroot: launcher({ flags: "-u", values: "-l -s -i -b", alone: "shell" }),
  torsocks: launcher({ flags: "-i --isolate" }),
  unbuffer: launcher({ flags: "-p" }),
  docker: { risk: "infrastructure" },
  podman: { risk: "infrastructure" },
};

/** Programs that start others in a way the table does not follow: opaque as a whole. */
const UNPARSED =
  "parallel systemd-run gdb lldb valgrind perf proxychains proxychains4 xvfb-run dbus-run-session rlwrap entr direnv dotenv " +
  "pipx uvx nix-shell nix tmux screen at batch crontab expect prlimit setpriv numactl " +
  "setarch linux32 linux64 i386 x86_64 capsh firejail bwrap proot dumb-init tini gosu su-exec start-stop-daemon chpst envdir " +
  "setuidgid softlimit runsv daemonize parallel-ssh pssh ansible hyperfine multitime nodemon watchexec cargo-watch " +
  "ts run-parts vim vi nvim view ex ed emacs emacsclient nano gvim socat mosh telnet osascript open xdg-open foreach";

const SHELLS = "sh bash dash zsh ksh ksh93 mksh ash rbash";
const FOREIGN_SHELLS =
  "pwsh powershell powershell.exe pwsh.exe cmd cmd.exe fish csh tcsh nu xonsh elvish wsl wsl.exe";

/** Builtins of bash that run nothing else and are no files. */
const BUILTINS =
  ": . [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval " +
  "exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read " +
  "readarray readonly return set shift shopt source suspend test time times trap true type typeset ulimit umask unalias " +
  "unset wait coproc";

const PLAIN =
  "ls cat head tail less more grep egrep fgrep rg ag wc sort uniq cut tr sed awk gawk mawk nawk find fd fdfind tree stat file du df " +
  "cp mv rm rmdir mkdir touch ln install truncate shred unlink chmod chown chgrp chattr dd tee split csplit tar zip unzip " +
  "gzip gunzip zcat bzip2 xz zstd cpio diff cmp comm patch date sleep seq yes which whereis whoami id groups hostname uname " +
  "uptime ps top htop free vmstat lsof kill pkill killall printenv basename dirname realpath readlink mktemp md5sum sha1sum " +
  "sha256sum sha512sum base64 xxd od hexdump strings jq yq column paste join fold fmt nl tac rev expr bc factor nproc arch " +
  "lscpu lsblk mount umount mkfs mkfs.ext4 fdisk parted swapoff swapon tput clear reset stty tty man info cal cksum sum sync " +
  "git gh glab hg svn iconv envsubst gpg openssl ssh-keygen ssh-add pgrep rename jar javac tsc eslint prettier logger " +
  "ip shutdown reboot poweroff halt init systemctl service journalctl dmesg sysctl modprobe insmod rmmod useradd userdel " +
  "usermod passwd visudo sudoedit crontab ufw iptables nft security pass op";
const NETWORK =
  "curl wget scp sftp rsync nc ncat netcat ping traceroute dig nslookup host ftp lftp aria2c http https xh mail sendmail rclone s3cmd";
const PROJECT_CODE =
  "make gmake cmake ninja npm yarn pnpm bun deno cargo go mvn gradle ant sbt rake bundle poetry pipenv uv tox pytest jest " +
  "vitest mocha just task bazel meson dotnet swift xcodebuild flutter composer npx bunx pdm hatch " +
  // Builds, tests and servers whose settings, plugins or targets are the workspace's own code.
  "cabal stack lerna rush gleam alembic flask uvicorn gunicorn hypercorn celery streamlit rails prisma invoke earthly pants buck2 " +
  "eslint eslint_d prettier stylelint xo standard rollup webpack parcel vite turbo nx wireit nyc c8 ava tap tape jasmine karma " +
  "cypress playwright knip postcss tailwindcss typedoc jsdoc commitlint ng next nuxt astro svelte-check vue-tsc changeset size-limit " +
  "py.test nox mypy pylint flake8 coverage sphinx-build mkdocs django-admin rspec rubocop standardrb phpunit phpstan psalm pest " +
  "php-cs-fixer prove bats bats-core busted dune mix rebar3 ctest cpack scons gn waf qmake premake mvnw gradlew lein jekyll " +
  "pre-commit semantic-release release-it goreleaser helmfile dart pub zig elm-test electron storybook";
const PACKAGES =
  "apt apt-get aptitude dpkg yum dnf rpm zypper pacman apk brew port snap flatpak pip pip3 gem conda mamba easy_install cpan choco winget";
const INFRASTRUCTURE =
  "kubectl helm terraform tofu terragrunt pulumi aws gcloud az ansible-playbook docker-compose oc eksctl doctl flyctl heroku " +
  "vercel vault consul nomad psql mysql mongo mongosh redis-cli sqlite3 gsutil kustomize argocd";

/** Interpreters: which option carries code, and which take a value before the script's name. */
export type InterpreterShape = {
  readonly language: string;
  readonly code: string;
  readonly values: string;
  /** `python -m name`: the code is named, not given. */
  readonly module?: string;
  /** Options that load a further file as code. */
  readonly loads?: string;
  readonly queries?: string;
  /** Options that only tell of the interpreter where nothing else is given: `ruby -v x.rb` runs the file. */
  readonly tellsAlone?: string;
  /** Options that start what the project's own settings name. */
  readonly tasks?: RegExp;
};

const PYTHON: InterpreterShape = {
  language: "python",
  code: "-c",
  values: "-W -X --check-hash-based-pycs",
  module: "-m",
  queries: "-V --version -VV -h --help",
};
const NODE: InterpreterShape = {
  language: "javascript",
  code: "-e --eval -p --print -pe",
  values: "-C --conditions --max-old-space-size",
  loads: "-r --require --import --loader --experimental-loader --env-file",
  queries: "-v --version -h --help",
};
const PERL: InterpreterShape = {
  language: "perl",
  code: "-e -E",
  values: "-I",
  loads: "-M -m",
  queries: "-v -V --version",
};
const RUBY: InterpreterShape = {
  language: "ruby",
  code: "-e",
  values: "-I -C -E",
  loads: "-r",
  queries: "--version --help",
  tellsAlone: "-v",
};
const PHP: InterpreterShape = {
  language: "php",
  code: "-r -B -R -E",
  values: "-d -c -z",
  loads: "-f",
  queries: "-v --version -m -i",
};
/** Further ones: which options carry code, and which load a file of it. */
const MORE_INTERPRETERS: readonly (readonly [name: string, code: string, loads?: string])[] = [
  ["julia", "-e --eval -E --print", "-L --load"],
  ["elixir", "-e --eval --rpc-eval", "-r -pr"],
  ["iex", "-e --eval", "-r -pr"],
  ["erl", "-eval", "-run -s"],
  ["escript", ""],
  ["ghci", "-e", "-ghci-script"],
  ["runghc", ""],
  ["runhaskell", ""],
  ["stack-runghc", ""],
  ["groovy", "-e"],
  ["guile", "-c", "-l -e"],
  ["luajit", "-e", "-l"],
  ["R", "-e", "-f --file"],
  ["ocaml", "-e", "-init"],
  ["scala", "-e"],
  ["clojure", "-e --eval"],
  ["clj", "-e --eval"],
  ["bb", "-e --eval"],
  ["racket", "-e --eval", "-f -l -t"],
  ["sbcl", "--eval", "--load --script"],
  ["clisp", "-x", "-i"],
  ["csi", "-e -eval", "-s -script"],
  ["swipl", "-g -t", "-s -f"],
  ["kotlin", "-e"],
  ["jshell", "-e"],
  ["coffee", "-e --eval"],
  ["octave", "--eval"],
  ["ipython", "-c"],
  ["ipython3", "-c"],
  ["jruby", "-e", "-r"],
  ["crystal", "eval"],
  ["gnuplot", "-e"],
];
export const INTERPRETERS: ReadonlyMap<string, InterpreterShape> = new Map([
  ...["python", "python2", "python3", "pypy", "pypy3"].map((name) => [name, PYTHON] as const),
  ...["node", "nodejs", "tsx", "ts-node"].map((name) => [name, NODE] as const),
  ["perl", PERL] as const,
  ["ruby", RUBY] as const,
  ["php", PHP] as const,
  ["lua", { language: "lua", code: "-e", values: "", loads: "-l", tellsAlone: "-v" }] as const,
  ["Rscript", { language: "r", code: "-e", values: "", queries: "--version" }] as const,
  ["tclsh", { language: "tcl", code: "", values: "" }] as const,
  ...MORE_INTERPRETERS.map(([name, code, loads = ""]) => {
    const shape: InterpreterShape = {
      language: name,
      code,
      values: "",
      loads,
      queries: "--version --help -version -help -h",
      ...(/^clj|^clojure$/.test(name) ? { tasks: /^-[AMXT]:/ } : {}),
    };
    return [name, shape] as const;
  }),
]);

const names = (text: string): string[] => text.split(" ").filter((name) => name !== "");
export const SHELL_NAMES: ReadonlySet<string> = new Set(names(SHELLS));
export const FOREIGN_SHELL_NAMES: ReadonlySet<string> = new Set(names(FOREIGN_SHELLS));
export const UNPARSED_LAUNCHERS: ReadonlySet<string> = new Set(names(UNPARSED));
export const BUILTIN_NAMES: ReadonlySet<string> = new Set(names(BUILTINS));

/** Directories whose programs are the system's own; a program anywhere else is code from a file. */
export const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set([
  "/bin",
  "/sbin",
  "/usr/bin",
  "/usr/sbin",
  "/usr/local/bin",
  "/usr/local/sbin",
  "/opt/homebrew/bin",
  "/run/current-system/sw/bin",
]);

const entries = (risk: Risk, text: Iterable<string>): [string, ProgramEntry][] =>
  [...text].map((name) => [name, { risk }]);

/** Everything that is known of programs, by name. A name that is not here has the risk `unknown`. */
export const PROGRAM_TABLE: ReadonlyMap<string, ProgramEntry> = new Map([
  ...entries("plain", BUILTIN_NAMES),
  ...entries("plain", names(EVERYDAY)),
  ...entries("plain", names(PLAIN)),
  ...entries("network", names(NETWORK)),
  ...entries("project_code", names(PROJECT_CODE)),
  ...entries("packages", names(PACKAGES)),
  ...entries("infrastructure", names(INFRASTRUCTURE)),
  ...entries("interpreter", [...INTERPRETERS.keys(), "java"]),
  ...entries("shell", [...SHELL_NAMES, ...FOREIGN_SHELL_NAMES]),
  ...entries("launcher", UNPARSED_LAUNCHERS),
  ...Object.entries(LAUNCHERS),
]);
