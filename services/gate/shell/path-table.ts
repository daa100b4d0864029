import type { PathShape } from "./path-shape.ts";
import { TOOL_PATHS } from "./tool-paths.ts";

const shape = (
  writes: PathShape["writes"],
  extent: PathShape["extent"],
  rest: Partial<PathShape> = {},
): PathShape => ({
  values: "",
  writes,
  extent,
  ...rest,
});
const READS_ALL = shape("none", "file", { reads: "all" });
const READS_AFTER_PATTERN = shape("none", "file", {
  reads: "after_first",
  values: "-e -f -A -B -C -m --include --exclude --exclude-dir -g -t",
});

/** Files that go into an issue, a request or a release. */
const GH_FILES = "-F --body-file --notes-file --input --env-file";
/** Named too, so that none of them is taken for a shortening of one that names a file. */
const GH_TEXTS = "-b --body -n --notes -t --title -H --head -B --base -R --repo";

/** Paths by program; a program that is not here writes and reads what nobody knows. */
export const PATH_TABLE: ReadonlyMap<string, PathShape> = new Map<string, PathShape>([
  ...TOOL_PATHS,
  ...["gh", "glab"].map((name): [string, PathShape] => [
    name,
    shape("none", "file", { values: `${GH_FILES} ${GH_TEXTS}`, inputs: GH_FILES }),
  ]),
  ["rm", shape("all", "tree", { unless: "--help --version" })],
  ["rmdir", shape("all", "tree")],
  ["unlink", shape("all", "file")],
  ["shred", shape("all", "file", { values: "-n -s --iterations --size --random-source" })],
  ["mkdir", shape("all", "file", { values: "-m --mode" })],
  ["touch", shape("all", "file", { values: "-d -r -t --date --reference --time" })],
  ["truncate", shape("all", "file", { values: "-s -r --size --reference" })],
  ["tee", shape("all", "file")],
  [
    "cp",
    shape("last", "tree", {
      values: "-t -S --target-directory --suffix",
      into: "-t --target-directory",
      reads: "but_last",
    }),
  ],
  [
    "mv",
    shape("last", "tree", {
      values: "-t -S --target-directory --suffix",
      into: "-t --target-directory",
      movesSources: true,
    }),
  ],
  [
    "ln",
    shape("last", "tree", { values: "-t -S --target-directory --suffix", into: "-t --target-directory" }),
  ],
  [
    "install",
    shape("last", "tree", {
      values: "-m -o -g -t -S --mode --owner --group --target-directory --suffix",
      into: "-t --target-directory",
      reads: "but_last",
    }),
  ],
  ["chmod", shape("after_first", "tree", { values: "--reference" })],
  ["chown", shape("after_first", "tree", { values: "--reference --from" })],
  ["chgrp", shape("after_first", "tree", { values: "--reference" })],
  ["chattr", shape("after_first", "tree", { values: "-v -p" })],
  [
    "sed",
    shape("after_first", "file", {
      values: "-e -f -l --expression --file --line-length",
      onlyWith: "-i --in-place",
      reads: "after_first",
    }),
  ],
  [
    "sort",
    shape("none", "file", {
      values: "-k -t -o -S -T --key --output --field-separator",
      outputs: "-o --output",
      reads: "all",
    }),
  ],
  [
    "curl",
    shape("none", "file", {
      values:
        "-o -O -d -H -X -u -A -e -b -c -F -T -m -w -x -K -D --output --data --data-raw --data-binary --header --request --user --user-agent --cookie --cookie-jar --form --upload-file --max-time --write-out --proxy --url --connect-timeout --retry --output-dir --dump-header --cacert --cert --key --config --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save",
      outputs:
        "-o -c -D --output --cookie-jar --dump-header --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save",
      into: "--output-dir",
    }),
  ],
  [
    "wget",
    shape("none", "file", {
      values:
        "-O -P -o -a -U -t -T -i --output-document --directory-prefix --output-file --append-output --user-agent --header --post-data --post-file --tries --timeout --input-file --save-cookies --hsts-file --warc-file --rejected-log",
      outputs:
        "-O -o -a --output-document --output-file --append-output --save-cookies --hsts-file --warc-file --rejected-log",
      into: "-P --directory-prefix",
    }),
  ],
  [
    "rsync",
    shape("last", "tree", {
      values:
        "-e -f -B -M -T --rsh --rsync-path --exclude --include --filter --files-from --exclude-from --include-from --log-file --backup-dir --bwlimit --port --password-file",
      reads: "but_last",
    }),
  ],
  ["scp", shape("last", "tree", { values: "-S -o -F -i -P -c -J -l", reads: "but_last" })],
  [
    "patch",
    shape("all", "file", {
      values: "-p -i -d -o -r --input --directory --output --reject-file --strip",
      outputs: "-o -r --output --reject-file",
      into: "-d --directory",
    }),
  ],
  ["gzip", shape("all", "file", { values: "-S", unless: "-c --stdout -l -t" })],
  ["gunzip", shape("all", "file", { values: "-S", unless: "-c --stdout -l -t" })],
  ["zip", shape("all", "file", { values: "-x -i -n -b" })],
  ["mktemp", shape("none", "file", {})],
  ["cat", READS_ALL],
  ["head", { ...READS_ALL, values: "-n -c --lines --bytes" }],
  ["tail", { ...READS_ALL, values: "-n -c --lines --bytes" }],
  ...[
    "less",
    "more",
    "tac",
    "nl",
    "base64",
    "od",
    "hexdump",
    "strings",
    "wc",
    "uniq",
    "cut",
    "zcat",
    "file",
    "stat",
    "bat",
    "sha256sum",
    "md5sum",
    "diff",
    "comm",
    "cmp",
    "column",
    "paste",
  ].map((name): [string, PathShape] => [name, READS_ALL]),
  ...["grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "jq"].map((name): [string, PathShape] => [
    name,
    READS_AFTER_PATTERN,
  ]),
]);
