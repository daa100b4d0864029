import { fastify } from "fastify";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly path: string;
  /** An answer as the gate gave it. */
  readonly answer: string;
}

/** The limit of any gate over HTTP: the same body in, parsed, the same body out, nothing decided and nothing kept. */
runAsChild<Settings>(async ({ path, answer }) => {
  const server = fastify({ logger: false });
  const reply = JSON.parse(answer) as object;
  server.post(path, () => Promise.resolve(reply));
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  return { answer: () => url, stop: () => server.close() };
});
