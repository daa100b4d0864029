import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findJava, majorOfText, majorOfVersion } from "./java.ts";
import type { Machine } from "./machine.ts";

describe("the version of a Java", () => {
  it.each([
    ["1.8.0_392", 8],
    ["11.0.21", 11],
    ["17", 17],
    ["25-ea", 25],
    ["25.0.3", 25],
  ])("reads %s as %d", (version, major) => {
    expect(majorOfVersion(version)).toBe(major);
  });

  it("is found in a release file and in what java -version prints", () => {
    expect(majorOfText('IMPLEMENTOR="Eclipse Adoptium"\nJAVA_VERSION="25.0.3"\n')).toBe(25);
    expect(majorOfText('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment')).toBe(17);
    expect(majorOfText("command not found")).toBeUndefined();
  });
});

describe("the search for a Java", () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "fabric-java-"));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  const makeJdk = async (name: string, version: string): Promise<string> => {
    const jdk = join(home, ".sdkman/candidates/java", name);
    await mkdir(join(jdk, "bin"), { recursive: true });
    await writeFile(join(jdk, "release"), `JAVA_VERSION="${version}"\n`);
    await writeFile(join(jdk, "bin", "java"), "");
    await chmod(join(jdk, "bin", "java"), 0o755);
    return jdk;
  };
  const machine = (env: Record<string, string>): Machine => ({ env, home, isRoot: false });

  it("prefers JAVA_HOME when it is new enough", async () => {
    const named = await makeJdk("named", "900.0.1");
    await makeJdk("another", "901");
    expect(await findJava(machine({ JAVA_HOME: named }), 900, "this test")).toMatchObject({
      home: named,
      major: 900,
    });
  });

  it("goes on to the usual places when JAVA_HOME is too old", async () => {
    const old = await makeJdk("old", "11.0.2");
    const young = await makeJdk("young", "900");
    expect(await findJava(machine({ JAVA_HOME: old }), 900, "this test")).toMatchObject({ home: young });
  });

  it("names the version that is needed, what it found and the command that brings one", async () => {
    const old = await makeJdk("old", "11.0.2");
    const search = findJava(machine({ JAVA_HOME: old }), 999, "Apicurio Registry");
    await expect(search).rejects.toMatchObject({ code: "TOOL_MISSING" });
    await expect(search).rejects.toThrow(/Apicurio Registry needs Java 999.*11 in .*(apt-get|brew) install/);
  });
});
