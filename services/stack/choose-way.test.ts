import { describe, expect, it, vi } from "vitest";
import { chooseWay } from "./choose-way.ts";

const noDocker = (): Promise<string | undefined> => Promise.resolve(undefined);
const docker = (): Promise<string | undefined> => Promise.resolve("29.1.0");
const endpoints = {
  kafkaBrokers: ["kafka:9092"],
  registryUrl: "http://registry:8080/apis/ccompat/v7",
  postgresUrl: "postgres://db/fabric",
};

describe("the way to a stack", () => {
  it("takes the servers that the configuration names, and asks nobody else", async () => {
    const askDocker = vi.fn(docker);
    expect((await chooseWay({ endpoints, remembered: "local", askDocker })).way).toBe("configured");
    expect(askDocker).not.toHaveBeenCalled();
  });

  it("refuses half a configuration and names what is missing", async () => {
    await expect(
      chooseWay({ endpoints: { kafkaBrokers: ["kafka:9092"], registryUrl: "" }, askDocker: docker }),
    ).rejects.toThrow(/not registryUrl, postgresUrl/);
  });

  it("takes a Docker engine that answers before local processes, and says its version", async () => {
    expect(await chooseWay({ askDocker: docker })).toEqual({
      way: "docker",
      reason: "Docker engine 29.1.0 answers",
    });
  });

  it("takes local processes when no engine answers", async () => {
    expect((await chooseWay({ askDocker: noDocker })).way).toBe("local");
  });

  it("stays with the data when an engine appears later", async () => {
    expect((await chooseWay({ remembered: "local", askDocker: docker })).way).toBe("local");
  });

  it("does not start a second, empty stack when the engine that holds the data is away", async () => {
    await expect(chooseWay({ remembered: "docker", askDocker: noDocker })).rejects.toMatchObject({
      code: "TOOL_MISSING",
    });
  });

  it("does what it is told against what it would choose", async () => {
    expect((await chooseWay({ forced: "local", askDocker: docker })).way).toBe("local");
    await expect(chooseWay({ forced: "docker", askDocker: noDocker })).rejects.toMatchObject({
      code: "TOOL_MISSING",
    });
  });
});
