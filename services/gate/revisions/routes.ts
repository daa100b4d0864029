import { z } from "zod";
import { Fault } from "../../../schemas/faults.ts";
import type { AccessTable, HttpRequest, HttpServer, ReceivedBody } from "../../platform/http.ts";
import { callerOf } from "../../platform/route-input.ts";
import type { ActivationContext } from "./activate.ts";
import { activateBundle, activateStored, rollback } from "./activate.ts";
import { fabricTenant } from "./activation-event.ts";
import { loadActivations } from "./revision-rows.ts";
import type { PolicyWatch } from "./watch-policy.ts";

/** Who may ask which route: everybody may know what decides, only an admin of the tenant `fabric` changes it. */
export const policyAccess: AccessTable = {
  "GET /v1/policy": ["runtime", "approver", "incident", "sre", "analyst", "auditor", "admin"],
  "POST /v1/policy/activate": ["admin"],
  "POST /v1/policy/rollback": ["admin"],
};

/** Largest bundle with its cases that is taken over HTTP. */
const bundleLimitBytes = 5 * 1024 * 1024;
const maxFiles = 500;

const note = z.string().max(1_000).optional();
/** Paths inside a bundle: no `..`, no absolute ones, nothing hidden. */
const path = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]*(\/[a-z0-9][a-z0-9._-]*)*$/i, "is no path inside a bundle");
const activateSchema = z.union([
  z.strictObject({
    name: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, "a bundle's name is lower case, with dashes"),
    files: z
      .record(path, z.string())
      .refine((files) => Object.keys(files).length <= maxFiles, `more than ${String(maxFiles)} files`),
    note,
  }),
  z.strictObject({ revision: z.string().min(1).max(200), note }),
]);
const rollbackSchema = z.strictObject({ note });

/** Adds the routes of policies; give `policyAccess` to the server. */
export function addPolicyRoutes(app: HttpServer, context: ActivationContext, watch: PolicyWatch): void {
  app.get("/v1/policy", async () => {
    const [head] = await loadActivations(context.database, 1);
    const { state, detail } = watch.state();
    return {
      /** What this gate decides by; the others follow within a second. */
      in_force: watch.current().revision,
      state,
      detail,
      active: head === undefined ? null : head.revision,
      previous: head?.previousRevision ?? null,
      activated_at: head === undefined ? null : new Date(head.activatedAtMs).toISOString(),
      activated_by: head?.activatedBy ?? null,
      note: head?.note ?? null,
    };
  });

  app.post<{ Body: ReceivedBody }>(
    "/v1/policy/activate",
    { bodyLimit: bundleLimitBytes },
    async (request, reply) => {
      const by = operatorOf(request);
      const asked = parse(activateSchema, request.body);
      const wish = { by, note: asked.note ?? null };
      const done =
        "revision" in asked
          ? await activateStored(context, asked.revision, wish)
          : await activateBundle(
              context,
              { name: asked.name, files: new Map(Object.entries(asked.files)) },
              wish,
            );
      await watch.refresh();
      return reply.code(done.changed ? 201 : 200).send(done);
    },
  );

  app.post<{ Body: ReceivedBody }>("/v1/policy/rollback", async (request, reply) => {
    const by = operatorOf(request);
    const asked = parse(rollbackSchema, request.body);
    const done = await rollback(context, { by, note: asked.note ?? null });
    await watch.refresh();
    return reply.code(201).send(done);
  });
}

/** The policy is every tenant's: an admin of one of them must not change it for the others. */
function operatorOf(request: Pick<HttpRequest, "caller">): string {
  const caller = callerOf(request);
  if (caller.tenantId !== fabricTenant) {
    throw new Fault(
      "ROLE_MISSING",
      `one policy serves all tenants, so only an admin of the tenant \`${fabricTenant}\` changes it`,
    );
  }
  return caller.subject;
}

function parse<T>(schema: z.ZodType<T>, body: ReceivedBody | null | undefined): T {
  if (body == null) throw new Fault("MEDIA_TYPE_UNSUPPORTED");
  const parsed = schema.safeParse(body.json);
  if (parsed.success) return parsed.data;
  throw new Fault("REQUEST_INVALID", z.prettifyError(parsed.error).replaceAll("\n", " ").slice(0, 2_000));
}
