import type { PathShape } from "./path-shape.ts";

const reads = (values: string, outputs = "", into = ""): PathShape => ({
  values: `${values} ${outputs} ${into}`,
  writes: "none",
  extent: "file",
  reads: "all",
  outputs,
  into,
});
const builds = (outputs: string, into = "", values = ""): PathShape => ({
  values: `${values} ${outputs} ${into}`,
  writes: "none",
  extent: "file",
  outputs,
  into,
});
/** Writes what it names, with one of these options or always. */
const rewrites = (onlyWith: string | undefined, values = "", unless = ""): PathShape => ({
  values,
  writes: "all",
  extent: "tree",
  reads: "all",
  ...(onlyWith === undefined ? {} : { onlyWith }),
  unless,
});
const each = (names: string, shape: PathShape): [string, PathShape][] =>
  names.split(" ").map((name) => [name, shape]);

const COMPILER = reads(
  "-I -L -l -D -U -x -std -include -isystem -MF -MT -MQ -T -z -u -arch",
  "-o -MF -MD --output",
);

/** Paths of text tools, compilers, archivers, formatters and clients, beside those of the path table. */
export const TOOL_PATHS: readonly (readonly [string, PathShape])[] = [
  ...each(
    "rev expand unexpand fmt fold nl pr look tsort ptx b2sum sha1sum sha224sum sha384sum sha512sum shasum cksum sum md5 base32 " +
      "batcat hexyl xzcat bzcat zstdcat zgrep zless zmore zdiff zcmp colrm col join numfmt csvlook csvcut csvgrep csvstat objdump " +
      "readelf nm size pdfinfo mimetype mediainfo view",
    reads("-w -t -s -n -f -c -d -e -g -b -i -l -S --width --tabs --columns -A -B -C"),
  ),
  ["shuf", reads("-i -n --input-range --head-count --random-source", "-o --output")],
  [
    "split",
    {
      ...reads("-a -b -C -l -n -t --suffix-length --bytes --lines --number --filter"),
      writes: "after_first",
      reads: "all",
    },
  ],
  ["csplit", reads("-b -n --suffix-format --digits", "", "-f --prefix")],
  ["iconv", reads("-f -t --from-code --to-code", "-o --output")],
  ["tac", reads("-s --separator")],
  ["xxd", { ...reads("-c -g -l -o -s -n -cols -len -seek"), writes: "after_first" }],
  ["uconv", reads("-f -t", "-o --output")],
  ["mlr", reads("", "--from")],
  ["xmllint", reads("--xpath --schema --encode --pattern", "--output -o --o")],
  ["pandoc", reads("-f -t --from --to", "-o --output --extract-media --log")],
  ["asciidoctor", builds("-o --out-file", "-D --destination-dir")],
  ["pdftotext", { ...reads("-f -l -r -x -y -W -H"), writes: "after_first" }],
  [
    "openssl",
    builds(
      "--out --keyout --writerand --CRLout --certout",
      "--outdir",
      "--in --inkey --key --pass --passin --passout --CA --CAkey --cert --config --extfile --rand",
    ),
  ],
  [
    "gpg",
    reads(
      "-r -u --recipient --local-user --homedir --passphrase --keyserver",
      "-o --output --log-file --status-file --logger-file",
    ),
  ],
  ["age", reads("-r -R -i --recipient --identity", "-o --output")],
  ...each("gcc g++ cc c++ cpp clang clang++ gfortran", COMPILER),
  ...each("ld as nasm yasm", reads("-f -L -l -T", "-o -Map --output")),
  ...each("objcopy strip", { ...reads("-I -O -j -R", "-o"), writes: "all" }),
  ["ar", { ...builds(""), writes: "after_first" }],
  ["rustc", reads("-L -C --crate-name --edition --crate-type --target --emit", "-o", "--out-dir")],
  ["rustfmt", rewrites(undefined, "--edition --config --config-path --color", "--check")],
  [
    "go",
    builds(
      "--o --coverprofile --cpuprofile --memprofile --trace --blockprofile",
      "--outputdir --C",
      "--tags --run --ldflags --count --timeout --mod",
    ),
  ],
  ["gofmt", rewrites("-w --w", "-r -cpuprofile")],
  ["goimports", rewrites("-w --w", "-local")],
  [
    "javac",
    builds("", "--d --s --h", "--cp --classpath --sourcepath --source --target --release --processorpath"),
  ],
  ["kotlinc", builds("--d")],
  ["jar", builds("-f --file", "-C")],
  ["javadoc", builds("", "--d")],
  [
    "tsc",
    reads(
      "-p --project --target --module --jsx --lib --types",
      "--outFile --tsBuildInfoFile --generateTrace --generateCpuProfile",
      "--outDir --declarationDir",
    ),
  ],
  ["vue-tsc", reads("-p --project", "--outFile", "--outDir --declarationDir")],
  [
    "esbuild",
    reads(
      "--platform --format --target --loader --define --external",
      "--outfile --metafile",
      "--outdir --outbase --servedir",
    ),
  ],
  ["swc", reads("--config-file", "-o --out-file", "-d --out-dir")],
  ["rollup", reads("-c --config -f --format -n --name", "-o --file", "-d --dir")],
  ["webpack", builds("--output-filename", "-o --output-path")],
  ["parcel", builds("", "--dist-dir --cache-dir")],
  ["vite", builds("", "--outDir")],
  ["sass", { ...reads("--style --load-path -I"), writes: "after_first" }],
  ["lessc", { ...reads("--include-path"), writes: "after_first" }],
  ["postcss", reads("--use -u --config", "-o --output", "-d --dir")],
  ["tailwindcss", reads("-i --input -c --config", "-o --output")],
  ["typedoc", builds("--json", "--out")],
  ["jsdoc", builds("", "-d --destination")],
  [
    "protoc",
    reads(
      "-I --proto_path",
      "-o --descriptor_set_out --dependency_out",
      "--js_out --ts_out --go_out --go-grpc_out --python_out --pyi_out --grpc_python_out --java_out --cpp_out --csharp_out --ruby_out --php_out --rust_out --kotlin_out --objc_out --dart_out --swift_out --doc_out --es_out --connect-es_out --grpc_out --x_out --validate_out --grpc-gateway_out --openapiv2_out",
    ),
  ],
  ["flatc", reads("-I", "", "-o")],
  ["thrift", reads("--gen -I", "", "-o -out --out")],
  ["bison", reads("", "-o --output -d --defines -g --graph")],
  ["flex", reads("", "-o --outfile --header-file")],
  ["dot", reads("-T -K -G -N -E", "-o")],
  ["mmdc", reads("-i --input -t -b", "-o --output")],
  ["plantuml", builds("", "-o")],
  ...each("7z 7za 7zr", builds("", "-o -w")),
  ["bsdtar", builds("-f", "-C")],
  ["lz4", { ...reads("-B -D"), writes: "after_first" }],
  ...each("bzip2 bunzip2 xz unxz lzma zstd unzstd", {
    ...rewrites(undefined, "-T -S -M", "-c --stdout -l --list -t --test"),
    extent: "file",
  }),
  ...each("dos2unix unix2dos", rewrites(undefined, "-c -i")),
  ["recode", rewrites(undefined)],
  ["sponge", rewrites(undefined)],
  ["perltidy", reads("-pro", "-o -b")],
  [
    "black",
    rewrites(
      undefined,
      "-l -t -c --line-length --target-version --config --exclude --include --code",
      "--check --diff --version",
    ),
  ],
  [
    "isort",
    rewrites(
      undefined,
      "--profile -l --line-length --settings-path",
      "--check -c --check-only --diff --version",
    ),
  ],
  [
    "ruff",
    {
      ...rewrites("--fix --fix-only", "--select --ignore --config --line-length --target-version -o", ""),
      outputs: "-o --output-file",
    },
  ],
  ["autopep8", rewrites("-i --in-place --recursive")],
  ["yapf", rewrites("-i --in-place")],
  ["autoflake", rewrites("-i --in-place")],
  ["pyupgrade", rewrites(undefined)],
  ["codespell", rewrites("-w --write-changes")],
  [
    "prettier",
    rewrites(
      "-w --write",
      "--config --ignore-path --parser --plugin --log-level --loglevel --tab-width --print-width",
    ),
  ],
  [
    "eslint",
    {
      ...rewrites("--fix", "-c --config --ext --format -f --ignore-path --rulesdir --parser --rule"),
      outputs: "-o --output-file",
      into: "--cache-location --cache-file",
    },
  ],
  ["stylelint", { ...rewrites("--fix", "--config --formatter"), outputs: "-o --output-file" }],
  ["biome", rewrites("--write --apply --apply-unsafe --fix", "--config-path")],
  ["clang-format", rewrites("-i --i", "--style -style")],
  ["clang-tidy", rewrites("--fix --fix-errors", "-p --checks")],
  ["shfmt", rewrites("-w --write", "-i -ln")],
  [
    "rubocop",
    {
      ...rewrites("-a -A --auto-correct --autocorrect --autocorrect-all", "--config -c --only"),
      outputs: "-o --out",
    },
  ],
  ["ktlint", rewrites("-F --format")],
  ["google-java-format", rewrites("-i --replace")],
  ["swiftformat", rewrites(undefined, "--config --rules", "--lint")],
  ["php-cs-fixer", rewrites(undefined, "--config --rules", "--dry-run")],
  ["phpcbf", rewrites(undefined, "--standard")],
  [
    "yq",
    {
      ...rewrites(
        "-i --in-place --inplace",
        "-o -p -s --split-exp --output-format --input-format --arg --argjson",
      ),
      writes: "after_first",
      reads: "after_first",
    },
  ],
  ["xmlstarlet", reads("-t -m -v -u -d -i -a -n -x")],
  ["dasel", builds("-o --out --write")],
  ["jo", builds("-o")],
  [
    "cmake",
    builds(
      "--graphviz --trace-redirect --profiling-output",
      "-B --install-prefix --prefix",
      "-S -G -D -A -T --build --target -j --parallel --preset --config -P -E -C",
    ),
  ],
  ["ctest", builds("-O --output-log --output-junit", "--test-dir")],
  ["meson", builds("", "--prefix --destdir")],
  [
    "npm",
    builds(
      "",
      "--prefix --pack-destination --cache --globalconfig --userconfig -C",
      "-w --workspace --registry --tag --otp --loglevel --depth",
    ),
  ],
  ["pnpm", builds("", "-C --dir --prefix --pack-destination --store-dir", "--filter -F")],
  ["yarn", builds("-o --out", "--cwd --modules-folder --cache-folder")],
  [
    "pip",
    builds(
      "--log --report",
      "-t --target --prefix --root -d --dest --cache-dir -w --wheel-dir",
      "-r -c -i -e --index-url --extra-index-url",
    ),
  ],
  [
    "pip3",
    builds(
      "--log --report",
      "-t --target --prefix --root -d --dest --cache-dir -w --wheel-dir",
      "-r -c -i -e --index-url --extra-index-url",
    ),
  ],
  [
    "cargo",
    builds(
      "",
      "--target-dir --out-dir --artifact-dir --root",
      "-p --package --features --bin --test --example --manifest-path -Z -j",
    ),
  ],
  ["dotnet", builds("", "-o --output --artifacts-path", "-c --configuration -f --framework -r --runtime -v")],
  [
    "pytest",
    builds(
      "--junitxml --junit-xml --result-log --log-file",
      "--basetemp --rootdir",
      "-k -m -p -n -o -c --cov --maxfail --tb",
    ),
  ],
  [
    "jest",
    builds("--outputFile", "--coverageDirectory --cacheDirectory", "-t --testNamePattern -c --config"),
  ],
  [
    "vitest",
    builds(
      "--outputFile --outputFile.json",
      "--coverage.reportsDirectory",
      "-t --project --reporter -r --root",
    ),
  ],
  ["coverage", builds("-o --data-file", "-d --directory")],
  ["make", builds("", "-C --directory", "-f -j -I --file --makefile -l -o -W")],
  ["sphinx-build", { ...builds("-w", "-d", "-b -c -D -j"), writes: "after_first", extent: "tree" }],
  ["mkdocs", builds("", "-d --site-dir", "-f")],
  ["mdbook", builds("", "-d --dest-dir")],
  ["hugo", builds("", "-d --destination --cacheDir")],
  ["ssh-keygen", { ...builds("-f", "", "-t -b -C -N -P -m -O -s -I -n"), unless: "-l -y -e -B -F -R -H" }],
  ["sqlite3", builds("--output")],
  ...each("psql usql", {
    ...builds(
      "-o --output -L --log-file",
      "",
      "-c --command -d --dbname -f --file -F --field-separator -h --host -p --port -P --pset -R --record-separator -T --table-attr -U --username -v --set --variable",
    ),
    pipes: true,
  }),
  ...each(
    "pg_dump pg_dumpall",
    builds("-f --file", "", "-d -h -p -U -n -N -t -T -F -Z -j -l -g --dbname --host --port --username"),
  ),
  ...each("pgcli", builds("--log-file -L", "", "-h -p -U -d")),
  ...each("mysql mariadb", builds("--tee", "", "-e --execute -u --user -h --host -P --port -D --database")),
  ...each("mycli", builds("--logfile --audit-log -l", "", "-e -u -h -P -D")),
  ...each(
    "mysqldump mariadb-dump",
    builds("-r --result-file --log-error", "-T --tab", "-u --user -h --host -P --port"),
  ),
  ["trivy", builds("-o --output", "--cache-dir")],
  ["gitleaks", builds("-r --report-path")],
  ["semgrep", builds("-o --output --json-output --sarif-output", "", "-c --config -e --lang")],
  ["hyperfine", builds("--export-json --export-csv --export-markdown --output")],
  ["envsubst", reads("")],
  ["rename", rewrites(undefined, "-e")],
  ["setfacl", rewrites(undefined, "-m -x")],
  ["chcon", rewrites(undefined)],
  ["mkfifo", rewrites(undefined, "-m --mode")],
];

/** Programs whose long options have one dash, or two: `openssl -out`, `go build -o`. */
const ONE_DASH = new Set([
  "openssl",
  "go",
  "javac",
  "javadoc",
  "kotlinc",
  "gofmt",
  "goimports",
  "clang-format",
  "tsc",
  "vue-tsc",
]);

/** `-out` as `--out`, where a program reads both alike. */
export function toTwoDashes(program: string, text: string): string {
  const isOneDash = ONE_DASH.has(program) && /^-[A-Za-z]/.test(text);
  // Letters are names of their own here: only what has more than one is a long option of tsc.
  return isOneDash && !(program === "tsc" && text.length === 2) ? `-${text}` : text;
}
