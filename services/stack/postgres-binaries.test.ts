import { describe, expect, it } from "vitest";
import { embeddedPlatform, versionOfText } from "./postgres-binaries.ts";
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

  it("gets its settings as arguments", () => {
    expect(settingsArgs({ wal_level: "logical", max_connections: 50 })).toEqual([
      "-c",
      "wal_level=logical",
      "-c",
      "max_connections=50",
    ]);
  });
});
