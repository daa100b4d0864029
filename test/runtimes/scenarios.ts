import type {
  Behaviour,
  Bypass,
  HookForm,
  RuntimeRoom,
  ScriptedCall,
} from "../../services/platform/runtime-room.ts";
import type { ModelScript, ScriptedTurn } from "../../services/doctor/scripted-model.ts";
import { promptFor } from "../../services/doctor/scripted-model.ts";

/** A command that the test policy denies; it would leave `file` behind, and neither remote nor branch exists. */
export const deniedCommand = (file: string): string => `git push --force nowhere main; echo ran > ${file}`;
/** A command for which the test policy wants a person. */
export const askedCommand = "ask; echo ran > approved.txt";

/** What the scripted model asks for, and which files say whether it ran. */
export interface Scenario {
  readonly script: ModelScript;
  /** Left by what has to run. */
  readonly leaves: readonly string[];
  /** Left by what has to be stopped: there without the hook, not there with it. */
  readonly stopped: readonly string[];
  /** What the model has to read about it; null: it need not be told anything. */
  readonly tells: RegExp | null;
  readonly bypass: Bypass | null;
}

/** How long the parent waits for a child that runs in the background, at most. */
const childMaxMs = 30_000;
const lookMs = 100;

/** A child whose first call is denied; the parent does not end before it, where it runs in the background. */
function childScript(
  shell: RuntimeRoom["drive"]["tools"]["shell"],
  subagent: (prompt: string) => ScriptedCall,
): ModelScript {
  let ended = 0;
  // One script serves several runs, and a client may ask for a child's last turn more than once.
  let endedBefore = 0;
  return {
    main: [
      {
        before: () => Promise.resolve((endedBefore = ended)),
        calls: [shell("echo hi > parent.txt")],
      },
      { calls: [subagent(promptFor("child"))] },
      {
        async before() {
          const deadlineMs = Date.now() + childMaxMs;
          while (ended === endedBefore && Date.now() < deadlineMs)
            await new Promise((done) => setTimeout(done, lookMs));
        },
        text: "done",
      },
    ],
    child: [
      { calls: [shell(deniedCommand("child-denied.txt"))] },
      { calls: [shell("echo hi > child.txt")] },
      { before: () => Promise.resolve((ended += 1)), text: "done" },
    ],
  };
}
const denial = /STATIC_DENY/;

/** The scenario of a behaviour, the same for all clients but for their tools' names; null: this client has no such tool. */
export function scenarioOf(behaviour: Behaviour, room: RuntimeRoom, form: HookForm): Scenario | null {
  const { shell, subagent } = room.drive.tools;
  const turn = (command: string): ScriptedTurn => ({ calls: [shell(command)] });
  const one = (command: string, rest: Partial<Pick<Scenario, "leaves" | "stopped" | "tells">>): Scenario => ({
    script: { main: [turn(command)] },
    leaves: [],
    stopped: [],
    tells: null,
    bypass: null,
    ...rest,
  });
  // A client's own HTTP hook says what it will of a gate that it does not reach.
  const unreachable = form === "http" ? /./ : /GATE_UNREACHABLE/;
  switch (behaviour) {
    case "allow":
      return one("echo hi > out.txt", { leaves: ["out.txt"] });
    case "deny":
      return one(deniedCommand("denied.txt"), { stopped: ["denied.txt"], tells: denial });
    case "modify":
      return one("rewrite-me; echo ran > original.txt", {
        leaves: ["modified.txt"],
        stopped: ["original.txt"],
      });
    case "approve":
      return one(askedCommand, { leaves: ["approved.txt"], tells: /APPROVAL_REQUIRED/ });
    case "gate_away":
    case "gate_slow":
    case "gate_garbage":
      return one("echo hi > out.txt", { stopped: ["out.txt"], tells: unreachable });
    case "hook_crash":
      return one("echo hi > out.txt", { stopped: ["out.txt"] });
    case "two_calls":
      return {
        script: { main: [{ calls: [shell("echo one > one.txt"), shell(deniedCommand("two.txt"))] }] },
        leaves: ["one.txt"],
        stopped: ["two.txt"],
        tells: denial,
        bypass: null,
      };
    case "failing_command":
      return {
        script: { main: [turn("echo broken >&2; exit 3"), turn("echo ok > after.txt")] },
        leaves: ["after.txt"],
        stopped: [],
        tells: null,
        bypass: null,
      };
    case "subagent":
      if (subagent === undefined) return null;
      return {
        script: childScript(shell, subagent),
        leaves: ["child.txt", "parent.txt"],
        stopped: ["child-denied.txt"],
        tells: denial,
        bypass: null,
      };
    default: {
      const bypass = room.bypasses.find((known) => known.behaviour === behaviour);
      if (bypass === undefined) return null;
      return {
        script: { main: bypass.turns.map((call) => ({ calls: [call] })) },
        leaves: [],
        stopped: [bypass.leaves],
        tells: null,
        bypass,
      };
    }
  }
}
