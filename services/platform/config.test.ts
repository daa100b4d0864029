import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import { databaseUrl, describeConfig, loadConfig } from "./config.ts";

const complete = {
  FABRIC_KAFKA_BROKERS: "127.0.0.1:9092, 127.0.0.1:9093",
  FABRIC_REGISTRY_URL: "http://127.0.0.1:8080/apis/ccompat/v7",
  FABRIC_DATABASE_URL_GATE: "postgres://fabric_gate:hunter2hunter2@127.0.0.1:5432/fabric",
};

describe("the configuration", () => {
  it("reads every broker of the list", () => {
    expect(loadConfig({ env: complete }).kafka.brokers).toEqual(["127.0.0.1:9092", "127.0.0.1:9093"]);
  });

  it("reports all faults at once, each by its variable's name", () => {
    const env = {
      FABRIC_KAFKA_BROKERS: "nowhere",
      FABRIC_GATE_BUDGET_MS: "soon",
      FABRIC_KAFKA_SASL_MECHANISM: "plain",
    };
    const fault = caught(() => loadConfig({ env }));
    expect(fault.code).toBe("CONFIG_INVALID");
    expect(fault.message).toMatch(/FABRIC_KAFKA_BROKERS: each broker is host:port/);
    expect(fault.message).toMatch(/FABRIC_GATE_BUDGET_MS/);
    expect(fault.message).toMatch(/FABRIC_REGISTRY_URL is not set/);
  });

  it("refuses a misspelt setting instead of ignoring it", () => {
    const fault = caught(() => loadConfig({ env: { ...complete, FABRIC_GATE_BUGDET_MS: "5" } }));
    expect(fault.message).toMatch(/FABRIC_GATE_BUGDET_MS is not a setting/);
  });

  it("leaves the variables of the test harness alone", () => {
    const env = { ...complete, FABRIC_RUN_MARK: "run-1", FABRIC_TEST_STACK_KEEP: "1" };
    expect(loadConfig({ env }).environment).toBe("local");
  });

  it("lets the environment win over the env file", () => {
    const file = join(mkdtempSync(join(tmpdir(), "fabric-config-")), "fabric.env");
    writeFileSync(file, "# local stack\nFABRIC_ENVIRONMENT=local\nFABRIC_GATE_PORT=7000\n");
    const config = loadConfig({ envFile: file, env: { ...complete, FABRIC_GATE_PORT: "7001" } });
    expect([config.environment, config.gate.port]).toEqual(["local", 7001]);
  });

  it("names the line of an env file that is not a setting", () => {
    const file = join(mkdtempSync(join(tmpdir(), "fabric-config-")), "fabric.env");
    writeFileSync(file, "FABRIC_ENVIRONMENT=local\nwhat is this\n");
    expect(caught(() => loadConfig({ envFile: file, env: complete })).message).toMatch(
      /line 2 is not NAME=value/,
    );
  });

  it("reads the headers of a collector, and shows their names alone", () => {
    const env = { ...complete, FABRIC_OTLP_HEADERS: "Authorization=Basic aGk=, X-Tenant = a" };
    const config = loadConfig({ env });
    expect(config.otlp).toMatchObject({
      endpoint: undefined,
      protocol: "http",
      headers: { authorization: "Basic aGk=", "x-tenant": "a" },
    });
    expect(JSON.stringify(describeConfig(config))).not.toContain("aGk");
    expect(caught(() => loadConfig({ env: { ...complete, FABRIC_OTLP_HEADERS: "secret" } })).message).toMatch(
      /FABRIC_OTLP_HEADERS: headers are name=value/,
    );
  });

  it("shows no password", () => {
    const config = loadConfig({
      env: {
        ...complete,
        FABRIC_KAFKA_SASL_MECHANISM: "plain",
        FABRIC_KAFKA_USERNAME: "u",
        FABRIC_KAFKA_PASSWORD: "hunter3hunter3",
      },
    });
    const shown = JSON.stringify(describeConfig(config));
    expect(shown).not.toMatch(/hunter/);
    expect(shown).toMatch(/fabric_gate:\[masked\]@127\.0\.0\.1/);
  });

  it("names the variable of the service that is started without its database", () => {
    const config = loadConfig({ env: complete });
    expect(databaseUrl(config, "gate")).toContain("fabric_gate");
    expect(caught(() => databaseUrl(config, "relay")).message).toMatch(
      /FABRIC_DATABASE_URL_RELAY is not set/,
    );
  });
});

function caught(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
