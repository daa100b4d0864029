import { z } from "zod";
import { lendKey } from "./lend-key.ts";
import type { World } from "./world.ts";

const answerSchema = z.looseObject({
  decision: z.string(),
  reason_code: z.string(),
  message: z.string(),
  plan_digest: z.string().nullable(),
  matched_rules: z.array(z.string()),
  approval: z.looseObject({ id: z.string() }).optional(),
  capability: z.looseObject({ id: z.string(), token: z.string().nullable() }).optional(),
});
type Answer = z.output<typeof answerSchema>;

const command = "npm install left-pad@1.3.0 && terraform apply -auto-approve";

/** Step: a plan waits for a person, passes once with that person's word, and its right is used once. */
export async function approvePlan(world: World): Promise<void> {
  world.say("What a person has to agree to");
  const people = await lendKey(world);
  try {
    const approver = await people.token("ann", "approver");
    const resource = await people.token("package-mirror", "resource");
    const asked = await ask(world, "call_demo_plan_1");
    world.show("call", command);
    world.show("answer", `${asked.decision} ${asked.reason_code} · ${asked.matched_rules.join(", ")}`);
    const ticket = asked.approval?.id ?? "";
    world.claim(
      "a plan with effects outside of the folder waits for a person",
      asked.decision === "require_approval" && ticket !== "",
      `${asked.decision}, ticket ${ticket.slice(0, 12)}…`,
    );

    const approve = { plan_digest: asked.plan_digest, note: "seen in the story" };
    const byAgent = await world.ask("POST", `/v1/approvals/${ticket}/approve`, approve);
    const other = await world.ask(
      "POST",
      `/v1/approvals/${ticket}/approve`,
      { ...approve, plan_digest: `sha256:${"0".repeat(64)}` },
      approver,
    );
    const byPerson = await world.ask("POST", `/v1/approvals/${ticket}/approve`, approve, approver);
    world.claim(
      "an agent's token cannot approve, and a person only the plan that was frozen",
      byAgent.status === 403 && other.status === 409 && byPerson.status === 200,
      `agent ${String(byAgent.status)}, another digest ${String(other.status)}, ann ${String(byPerson.status)}`,
    );

    const passed = await ask(world, "call_demo_plan_2");
    const again = await ask(world, "call_demo_plan_3");
    world.claim(
      "the same call passes once, and asks again after that",
      passed.decision === "allow" &&
        passed.reason_code === "APPROVED" &&
        again.decision === "require_approval",
      `${passed.decision} ${passed.reason_code}, then ${again.decision}`,
    );

    const spend = (key: string, digest: string | null): Promise<number> =>
      world
        .ask(
          "POST",
          "/v1/capabilities/spend",
          { token: passed.capability?.token, plan_digest: digest, idempotency_key: key },
          resource,
        )
        .then(({ status }) => status);
    const wrong = await spend("story-0", `sha256:${"1".repeat(64)}`);
    const uses = await Promise.all(
      Array.from({ length: 16 }, (_, index) => spend(`story-${String(index + 1)}`, passed.plan_digest)),
    );
    const used = uses.filter((status) => status === 200).length;
    world.claim(
      "its right carries out this plan, once, however many try at the same time",
      wrong === 409 && used === 1,
      `another plan ${String(wrong)}; ${String(used)} of 16 parallel uses`,
    );
  } finally {
    await people.takeBack();
  }
}

async function ask(world: World, callId: string): Promise<Answer> {
  const { body } = await world.decide({
    runtime: "own-harness",
    session_id: "story-approval",
    tool_call_id: callId,
    tool: "shell.run",
    input: { command },
    working_directory: "/home/dev/project",
  });
  return answerSchema.parse(body);
}
