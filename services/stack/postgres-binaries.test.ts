import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPackageDir, run } from "./machine.ts";
import { copyBinaries, embeddedPlatform, findPostgres, versionOfText } from "./postgres-binaries.ts";
import { settingsArgs } from "./postgres-process.ts";
import { userOfPasswd } from "./postgres-user.ts";

describe("the PostgreSQL of a machine", () => {
  it("is told by what the program prints", () => {
    expect(versionOfText("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n")).toBe("15.18");
    expect(versionOfText("postgres (PostgreSQL) 19beta1\n")).toBe("19beta1");
    expect(versionOfText("no such file")).toBeUndefined();
  });

  it("is looked for in npm under npm's name for the platform", () => {
    expect(embeddedPlatform("linux", "x64")).toBe("linux-x64");
    expect(embeddedPlatform("win32", "x64")).toBe("windows-x64");
  });

  it("is run by a user of the password file", () => {
    const passwd = "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n";
    expect(userOfPasswd(passwd, "postgres")).toEqual({ uid: 101, gid: 104 });
    expect(userOfPasswd(passwd, "nobody")).toBeUndefined();
  });

  it("runs from a copy, where its user cannot reach the original", async () => {
    const home = await mkdtemp(join(tmpdir(), "fabric-binaries-"));
    try {
      const machine = { env: process.env, home, isRoot: false };
      const npm = await findPostgres(machine, await findPackageDir(), { origin: "npm" });
      const copy = await copyBinaries(npm, home);
      expect(copy.binDir.startsWith(home)).toBe(true);
      const printed = await run(join(copy.binDir, "postgres"), ["--version"]);
      expect(versionOfText(printed.output)).toBe(npm.version);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  it("gets its settings as arguments", () => {
    expect(settingsArgs({ wal_level: "logical", max_connections: 50 })).toEqual([
      "-c",
      "wal_level=logical",
      "-c",
      "max_connections=50",
    ]);
  });
});
