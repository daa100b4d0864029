import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fetchKafkaJars, fetchOnce, isComplete, versionsOfPom } from "./downloads.ts";
import type { DownloadContext } from "./downloads.ts";
import { findPackageDir } from "./machine.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fabric-downloads-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("a download", () => {
  const counted = (): { fill: (into: string) => Promise<void>; times: () => number } => {
    let times = 0;
    return {
      times: () => times,
      fill: async (into) => {
        times += 1;
        await mkdir(join(into, "lib"));
        await writeFile(join(into, "lib", "a.jar"), "abc");
      },
    };
  };

  it("is made once, and once only when two ask at the same time", async () => {
    const { fill, times } = counted();
    const folder = join(dir, "kafka-1");
    await Promise.all([fetchOnce(folder, fill), fetchOnce(folder, fill)]);
    await fetchOnce(folder, fill);
    expect(times()).toBe(1);
    expect(await readFile(join(folder, "lib", "a.jar"), "utf8")).toBe("abc");
  });

  it("is made again when a file of it is cut short or gone", async () => {
    const { fill, times } = counted();
    const folder = join(dir, "kafka-1");
    await fetchOnce(folder, fill);
    await writeFile(join(folder, "lib", "a.jar"), "a");
    expect(await isComplete(folder)).toBe(false);
    await fetchOnce(folder, fill);
    await rm(join(folder, "lib", "a.jar"));
    await fetchOnce(folder, fill);
    expect(times()).toBe(3);
  });

  it("is not there at all when it failed halfway", async () => {
    const folder = join(dir, "kafka-1");
    const failing = async (into: string): Promise<void> => {
      await writeFile(join(into, "a.jar"), "abc");
      throw new Error("the network went away");
    };
    await expect(fetchOnce(folder, failing)).rejects.toThrow("the network went away");
    expect(await isComplete(folder)).toBe(false);
    const { fill, times } = counted();
    await fetchOnce(folder, fill);
    expect(times()).toBe(1);
    await expect(readFile(join(folder, "a.jar"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("Maven", () => {
  const context = (path: string): DownloadContext => ({
    downloadsDir: join(dir, "downloads"),
    pomFile: join(dir, "pom.xml"),
    versions: { kafka: "4", apicurio: "3" },
    machine: { env: { PATH: path }, home: dir, isRoot: false },
    log: () => undefined,
    findJava: () => Promise.resolve({ program: "/jdk/bin/java", home: "/jdk", major: 21 }),
  });

  it("is named with the command that brings it when it is missing", async () => {
    const fetching = fetchKafkaJars(context(dir));
    await expect(fetching).rejects.toMatchObject({ code: "TOOL_MISSING" });
    await expect(fetching).rejects.toThrow(/(apt-get|brew) install maven/);
  });

  it("says why it failed", async () => {
    await writeFile(
      join(dir, "mvn"),
      "#!/bin/sh\necho '[INFO] x'; echo '[ERROR] Unknown host repo'; exit 1\n",
      {
        mode: 0o755,
      },
    );
    await expect(fetchKafkaJars(context(`${dir}:/usr/bin:/bin`))).rejects.toThrow(
      /check the network.*Unknown host repo/,
    );
  });
});

describe("the versions", () => {
  it("are the same in the Maven file and the compose file", async () => {
    const packageDir = await findPackageDir();
    const versions = versionsOfPom(await readFile(join(packageDir, "deploy/local/pom.xml"), "utf8"));
    const compose = await readFile(join(packageDir, "deploy/compose.yaml"), "utf8");
    expect(compose).toContain(`FABRIC_KAFKA_VERSION:-${versions.kafka}}`);
    expect(compose).toContain(`FABRIC_APICURIO_VERSION:-${versions.apicurio}}`);
  });
});
