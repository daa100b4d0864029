import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { askDocker, renderOverride } from "./docker.ts";
import { findPackageDir } from "./machine.ts";
import type { Machine } from "./machine.ts";

describe("the question whether a Docker engine answers", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fabric-docker-"));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const machineWith = async (script?: string): Promise<Machine> => {
    if (script !== undefined) await writeFile(join(dir, "docker"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { env: { PATH: script === undefined ? dir : `${dir}:/usr/bin:/bin` }, home: dir, isRoot: false };
  };

  it("is answered with the engine's version", async () => {
    expect(await askDocker(await machineWith("echo 29.1.0"))).toBe("29.1.0");
  });

  it.each([
    ["there is no docker", undefined],
    ["the client finds no engine", "echo 'Cannot connect to the Docker daemon' >&2; exit 1"],
    ["the client prints nothing and says all is well", "exit 0"],
    ["there is an engine without compose", 'test "$1" = info && echo 29.1.0'],
    ["nobody answers", "exec sleep 60"],
  ])("is answered with no when %s", async (_case, script) => {
    expect(await askDocker(await machineWith(script))).toBeUndefined();
  });
});

describe("the compose files", () => {
  it("bind every port to this machine alone", async () => {
    const text = await readFile(join(await findPackageDir(), "deploy", "compose.yaml"), "utf8");
    const { services } = parse(text) as { services: Record<string, { ports: string[] }> };
    expect(Object.keys(services).sort()).toEqual(["kafka", "postgres", "registry"]);
    for (const { ports } of Object.values(services)) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });

  it("carry the caller's settings to broker and database", () => {
    expect(parse(renderOverride({ "message.max.bytes": 1000 }, { wal_level: "logical" }))).toEqual({
      services: {
        kafka: { environment: { KAFKA_MESSAGE_MAX_BYTES: "1000" } },
        postgres: { command: ["postgres", "-c", "max_connections=200", "-c", "wal_level=logical"] },
      },
    });
  });
});
