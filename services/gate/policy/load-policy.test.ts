import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Fault } from "../../../schemas/faults.ts";
import { givenBundle } from "./given-bundle.ts";
import { checkBundle, loadPolicy } from "./load-policy.ts";
import { toBundleDigest } from "./parse-policy.ts";
import { readBundleFiles } from "./read-bundle-files.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A folder `small` with the small bundle in it. */
function writeBundle(changes: Readonly<Record<string, string | null>> = {}): string {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), "bundle-")));
  folders.push(outside);
  const dir = join(outside, "small");
  for (const [path, text] of givenBundle(changes)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  return dir;
}

async function refusal(dir: string): Promise<string> {
  const error: unknown = await loadPolicy(dir).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Fault)) throw new Error("the bundle was not refused");
  expect(error.code).toBe("CONFIG_INVALID");
  return error.message;
}

describe("a bundle's folder", () => {
  it("is loaded by its name, with the digest of its bytes", async () => {
    const policy = await loadPolicy(writeBundle());
    expect(policy.name).toBe("small");
    expect(policy.digest).toBe(toBundleDigest(givenBundle()));
  });

  it("is read as it is, whatever beginning or line ends a file has", async () => {
    const text = "\ufeff# é\r\n";
    const files = await readBundleFiles(writeBundle({ "README.md": text }));
    expect(files.get("README.md")).toBe(text);
    expect([...files.keys()].sort()).toEqual([...givenBundle({ "README.md": text }).keys()].sort());
  });

  it("is refused with all that is wrong, in files and in what they say", async () => {
    const dir = writeBundle({ "risk.yaml": "levels: 1\n", "notes.txt": "" });
    mkdirSync(join(dir, "old"));
    writeFileSync(join(dir, "tools.yaml"), Buffer.from([0x74, 0xff]));
    expect(await refusal(dir)).toMatch(
      /is refused\nnotes\.txt: no file .*\nold: a bundle has no such folder.*\nrisk\.yaml:1: levels: .*\ntools\.yaml: the file is no UTF-8 text$/,
    );
  });

  it("is refused with one fault when it is not there, or is no folder", async () => {
    const dir = writeBundle();
    expect(await refusal(join(dir, "nope"))).toMatch(/is refused\n[^\n]*nope: there is no such folder$/);
    expect(await refusal(join(dir, "tools.yaml"))).toMatch(/is refused\n[^\n]*: this is no folder[^\n]*$/);
  });

  it("is refused when a symbolic link leads out of it, and is read when it stays inside", async () => {
    const dir = writeBundle();
    writeFileSync(join(dir, "..", "secret.txt"), "x");
    writeFileSync(join(dir, "..", "small-2"), "x");
    symlinkSync(join(dir, "..", "secret.txt"), join(dir, "README.md"));
    expect(await refusal(dir)).toContain("README.md: a symbolic link leads out of the bundle");
    rmSync(join(dir, "README.md"));
    symlinkSync(join(dir, "..", "small-2"), join(dir, "README.md"));
    expect(await refusal(dir)).toContain("README.md: a symbolic link leads out of the bundle");
    rmSync(join(dir, "README.md"));
    symlinkSync("bundle.yaml", join(dir, "README.md"));
    expect((await loadPolicy(dir)).name).toBe("small");
  });

  it("is refused when its cases are a link to another folder", async () => {
    const dir = writeBundle({ "cases/all.yaml": null });
    mkdirSync(join(dir, "..", "elsewhere"));
    symlinkSync(join(dir, "..", "elsewhere"), join(dir, "cases"));
    expect(await refusal(dir)).toContain("cases: a symbolic link leads out of the bundle");
  });

  it("can be a mounted volume, which keeps its files behind links", async () => {
    const dir = writeBundle();
    const volume = join(dir, "..2026_01_31");
    mkdirSync(volume);
    writeFileSync(join(volume, "README.md"), "x");
    symlinkSync("..2026_01_31", join(dir, "..data"));
    symlinkSync("..data/README.md", join(dir, "README.md"));
    expect((await readBundleFiles(dir)).get("README.md")).toBe("x");
  });

  it("is refused when a file is larger than 1 MiB", async () => {
    const dir = writeBundle({ "README.md": "x".repeat(1_048_577) });
    expect(await refusal(dir)).toContain("README.md: the file is larger than 1 MiB");
  });

  it("is checked with its own cases", async () => {
    const check = await checkBundle(writeBundle(), () => ({
      ...{ decision: "deny", reason: "STATIC_DENY", matchedRules: ["deny.force-push"] },
    }));
    expect(check).toMatchObject({
      problems: [],
      cases: 2,
      denies: 1,
      failures: [{ name: "a listing is allowed" }],
    });
  });
});
