import { describe, expect, it } from "vitest";
import { brokerProperties, renderProperties } from "./kafka-process.ts";

describe("the broker's properties", () => {
  const ports = { kafka: 20_001, kafkaController: 20_002 };

  it("listen on this machine alone", () => {
    const { listeners } = brokerProperties("/data", ports, {});
    expect(listeners).toBe("PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002");
  });

  it("make no topic by themselves, and let a group begin at once", () => {
    expect(brokerProperties("/data", ports, {})).toMatchObject({
      "auto.create.topics.enable": false,
      "group.initial.rebalance.delay.ms": 0,
      "offsets.topic.replication.factor": 1,
    });
  });

  it("yield to the caller's", () => {
    expect(
      brokerProperties("/data", ports, { "message.max.bytes": 1000, "log.dirs": "/other" }),
    ).toMatchObject({
      "message.max.bytes": 1000,
      "log.dirs": "/other",
    });
  });

  it("are written sorted, a line each, with backslashes doubled", () => {
    expect(renderProperties({ "b.c": "C:\\data", a: true, "a.b": 3 })).toBe(
      "a=true\na.b=3\nb.c=C:\\\\data\n",
    );
  });
});
