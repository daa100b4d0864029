import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operandLimits, readSurroundings } from "./operands.ts";

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "operands-")));
  writeFileSync(join(folder, "run.sh"), "echo hi\n");
  writeFileSync(join(folder, "large"), Buffer.alloc(operandLimits.maxBytes + 1));
  writeFileSync(join(folder, "largest"), Buffer.alloc(operandLimits.maxBytes));
  writeFileSync(join(folder, "secret"), "s");
  mkdirSync(join(folder, "made"));
  symlinkSync(join(folder, "secret"), join(folder, "notes"));
  symlinkSync(join(folder, "made"), join(folder, "linked"));
  symlinkSync(join(folder, "loop"), join(folder, "loop"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
});
afterAll(() => rmSync(folder, { recursive: true }));

const limits = { ...operandLimits, timeoutMs: 5_000 };
const read = async (...names: string[]): Promise<(string | null)[]> => {
  const operandPaths = names.map((name) => join(folder, name));
  const { operands } = await readSurroundings({ touched: [], operandPaths }, limits);
  expect(operands.map(({ path }) => path)).toEqual(operandPaths);
  return operands.map(({ digest }) => digest);
};

describe("operands", () => {
  it("have the digest of their content", async () => {
    expect(await read("run.sh")).toEqual([
      "sha256:ab08508fdf5ca4da5c4995987bc41c56c048aaa5eeb046417ae4049b7d40286e",
    ]);
  });

  it("that are no regular file, are too large or are not there have none, and nobody waits for them", async () => {
    expect(await read("pipe", "large", "made", "absent", "loop")).toEqual([null, null, null, null, null]);
    expect((await read("largest"))[0]).toMatch(/^sha256:/);
    const { operands } = await readSurroundings(
      { touched: [], operandPaths: ["/dev/zero", "rel.sh"] },
      limits,
    );
    expect(operands.map(({ digest }) => digest)).toEqual([null, null]);
  });

  it("beyond the number that is read have none", async () => {
    const { operands } = await readSurroundings(
      { touched: [], operandPaths: [join(folder, "run.sh"), join(folder, "secret")] },
      { ...limits, maxFiles: 1 },
    );
    expect(operands.map(({ digest }) => digest === null)).toEqual([false, true]);
  });
});

describe("links", () => {
  it("of operands are followed however much else the line touches", async () => {
    const touched = Array.from({ length: 300 }, (_, at) => ({
      path: join(folder, `f${String(at)}`),
      mode: "read" as const,
    }));
    const climbs = touched.map(({ path }) => ({
      path,
      spelled: `${path}/../${path.split("/").at(-1) ?? ""}`,
    }));
    const operandPaths = [join(folder, "notes")];
    const { operands, realPaths } = await readSurroundings({ touched, operandPaths, climbs }, limits);
    expect(realPaths.get(join(folder, "notes"))).toBe(join(folder, "secret"));
    expect(operands[0]?.digest).toMatch(/^sha256:/);
  });

  it("that were not followed leave an operand without a digest", async () => {
    const path = join(folder, "run.sh");
    const digestOf = async (
      more: Partial<typeof limits>,
      climbs: readonly { path: string; spelled: string }[] = [],
    ): Promise<string | null | undefined> => {
      const found = await readSurroundings(
        { touched: [], operandPaths: [path], climbs },
        { ...limits, ...more },
      );
      return found.operands[0]?.digest;
    };
    expect(await digestOf({})).toMatch(/^sha256:/);
    expect(await digestOf({ maxLinks: 0 })).toBeNull();
    const climbs = [{ path, spelled: `${folder}/linked/../run.sh` }];
    expect(await digestOf({}, climbs)).toMatch(/^sha256:/);
    expect(await digestOf({ maxLinks: 1 }, climbs)).toBeNull();
    expect(await digestOf({}, [{ path, spelled: `${folder}/loop/../run.sh` }])).toBeNull();
  });

  it("of touched paths are followed, also where the file is not there yet", async () => {
    const touched = ["notes", "secret", "linked/new/file", "absent", "loop"].map((name) => ({
      path: join(folder, name),
      mode: "write" as const,
    }));
    const { realPaths } = await readSurroundings({ touched, operandPaths: [] }, limits);
    expect([...realPaths]).toEqual([
      [join(folder, "notes"), join(folder, "secret")],
      [join(folder, "linked/new/file"), join(folder, "made/new/file")],
    ]);
  });
});
