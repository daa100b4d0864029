import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Common } from "../cli/actions.ts";
import { createAuthKeysFile } from "../platform/auth-keys.ts";
import { issueToken } from "./tokens.ts";

let dir: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "tokens-"));
  await createAuthKeysFile(join(dir, "keys.json"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const approver = { role: "approver", tenant: "local", subject: undefined, ttl: 60, out: undefined };

/** A person who types these, and what he was asked. */
function person(...typed: string[]): Pick<Common, "askSecret" | "screen"> & { readonly asked: string[] } {
  const asked: string[] = [];
  const screen = { progress: () => undefined } as unknown as Common["screen"];
  const askSecret = (prompt: string): Promise<string> => {
    asked.push(prompt);
    return Promise.resolve(typed.shift() ?? "");
  };
  return { screen, askSecret, asked };
}

describe("a token of a person", () => {
  it("names the rule for a new passphrase, and refuses a short one before it is asked for again", async () => {
    const ann = person("short", "short");
    await expect(issueToken(join(dir, "keys.json"), approver, ann)).rejects.toMatchObject({ code: "USAGE" });
    expect(ann.asked).toEqual(["new passphrase, at least 12 characters"]);
  });

  it("goes to a file that nobody else can read, and is not shown", async () => {
    const out = join(dir, "approver.token");
    const words = "a long enough passphrase";
    const options = { ...approver, out };
    const report = await issueToken(join(dir, "keys.json"), options, person(words, words));
    const token = readFileSync(out, "utf8").trim();
    expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect(JSON.stringify(report)).not.toContain(token);
    expect(report.text).toContain(`--token-file ${out}`);
    // Again, over an old one.
    await issueToken(join(dir, "keys.json"), { ...options, ttl: 120 }, person(words));
    expect(readFileSync(out, "utf8").trim()).not.toBe(token);
  });
});
