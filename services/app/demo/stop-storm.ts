import { z } from "zod";
import { lendKey } from "./lend-key.ts";
import type { World } from "./world.ts";

const answerSchema = z.looseObject({ decision: z.string(), reason_code: z.string(), message: z.string() });
type Answer = z.output<typeof answerSchema>;
const tripsSchema = z.object({ trips: z.array(z.looseObject({ id: z.string(), scope: z.string() })) });
const incidentSchema = z.looseObject({ id: z.string() });

/** Each agent of the storm starts three: nobody passes a limit of his own. */
const branching = 3;
/** Far more than are started until the breaker has seen it. */
const maxSpawns = 400;

/** Step: a tree of agents is put to read-only, and a person resets it; a session is frozen, and a person lifts that. */
export async function stopStorm(world: World): Promise<void> {
  world.say("What stops a storm of agents");
  const people = await lendKey(world);
  try {
    const ida = await people.token("ida", "incident");
    let started = 0;
    let refused: Answer | null = null;
    for (let spawn = 1; spawn <= maxSpawns && refused === null; spawn += 1) {
      const answer = await startAgent(world, spawn);
      if (answer.decision === "allow") started += 1;
      else if (answer.reason_code !== "GATE_TIMEOUT") refused = answer;
    }
    world.show("answer", refused?.message.slice(0, 140) ?? "nobody refused");
    const reading = await ask(world, "file.read", "storm", { file_path: "/home/dev/project/a.txt" });
    world.claim(
      "a goal whose agents start agents is read-only past its limit, and may still read",
      refused?.reason_code === "READ_ONLY_BREAKER" && reading.decision === "allow",
      `${String(started)} agents started, then ${refused?.reason_code ?? "nothing"}; reading: ${reading.decision}`,
    );

    const { body } = await world.ask("GET", "/v1/breaker", undefined, ida);
    const trip = tripsSchema.parse(body).trips.find(({ scope }) => scope === "correlation")?.id ?? "";
    const reason = { reason: "the loop is gone" };
    const byAgent = await world.ask("POST", `/v1/breaker/${trip}/reset`, reason);
    const byPerson = await world.ask("POST", `/v1/breaker/${trip}/reset`, reason, ida);
    const after = await startAgent(world, maxSpawns + 1);
    world.claim(
      "a person resets it, and an agent's token cannot",
      byAgent.status === 403 && byPerson.status === 200 && after.decision === "allow",
      `agent ${String(byAgent.status)}, ida ${String(byPerson.status)}, then ${after.decision}`,
    );

    const frozen = { scope: "session", scope_id: "wild", reason: "runs wild" };
    const declared = await world.ask("POST", "/v1/incidents", frozen, ida);
    const held = await ask(world, "todo.write", "wild", { todos: [] });
    const { id } = incidentSchema.parse(declared.body);
    await world.ask("POST", `/v1/incidents/${id}/lift`, { reason: "looked at it" }, ida);
    const free = await ask(world, "todo.write", "wild", { todos: [] });
    world.claim(
      "a session that a person freezes gets no with its next call, until a person lifts it",
      held.reason_code === "INCIDENT_FROZEN" && free.decision === "allow",
      `${held.reason_code}, then ${free.decision}`,
    );
  } finally {
    await people.takeBack();
  }
}

/** The tree in the order of its starts: agent n is started by agent n / 3. */
function startAgent(world: World, spawn: number): Promise<Answer> {
  const parent = Math.floor((spawn - 1) / branching);
  return ask(world, "agent.spawn", `storm.${String(parent)}`, { prompt: "look further" }, "storm");
}

async function ask(
  world: World,
  tool: string,
  session: string,
  input: object,
  parent?: string,
): Promise<Answer> {
  const { body } = await world.decide({
    runtime: "own-harness",
    session_id: session,
    tool,
    input,
    working_directory: "/home/dev/project",
    ...(parent === undefined ? {} : { parent_session_id: parent }),
  });
  return answerSchema.parse(body);
}
