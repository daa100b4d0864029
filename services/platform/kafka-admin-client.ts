import type { Admin } from "kafkajs";
import type { BrokerRoute } from "./kafka-connection.ts";
import { openKafka } from "./kafka-connection.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

/** Questions over kafkajs' admin client; what went wrong is thrown as it came. */
export interface AdminClient {
  /** The first question connects; one that got no answer throws its connection away, and the next one opens another. */
  ask<T>(question: (admin: Admin) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

interface Connection {
  readonly admin: Admin;
  readonly connected: Promise<void>;
  /** Rejects when a request over it got no answer in time. */
  readonly silent: Promise<never>;
}

/**
 * kafkajs keeps a connection on which a request timed out, and asks over it again: one that a router forgot is asked
 * for ever. So nothing is asked over it after that.
 * INVARIANT: test/fault/link-faults.test.ts "broker-black-hole".
 */
export function openAdminClient(options: {
  readonly endpoint: KafkaEndpoint;
  readonly log: Log;
  readonly retries: number;
  readonly route?: BrokerRoute | undefined;
}): AdminClient {
  const kafka = openKafka(options.endpoint, options.log, options.route);
  let current: Connection | null = null;

  function open(): Connection {
    const admin = kafka.admin({ retry: { retries: options.retries, initialRetryTime: 100 } });
    const silent = new Promise<never>((_resolve, reject) => {
      admin.on(admin.events.REQUEST_TIMEOUT, ({ payload }) =>
        reject(new Error(`${payload.apiName} got no answer`)),
      );
    });
    silent.catch(() => undefined);
    const connected = admin.connect();
    connected.catch(() => undefined);
    return { admin, connected, silent };
  }

  return {
    async ask(question) {
      const mine = (current ??= open());
      try {
        await Promise.race([mine.connected, mine.silent]);
        return await Promise.race([question(mine.admin), mine.silent]);
      } catch (error) {
        if (!isAnswer(error)) {
          if (current === mine) current = null;
          mine.admin.disconnect().catch(() => undefined);
        }
        throw error;
      }
    },
    async close() {
      const last = current;
      current = null;
      await last?.admin.disconnect().catch(() => undefined);
    },
  };
}

/** Whether the broker itself said it: then the connection is good. */
function isAnswer(error: unknown): boolean {
  const { code, errors, groups, cause } = error as {
    readonly code?: unknown;
    readonly errors?: readonly unknown[];
    readonly groups?: readonly unknown[];
    readonly cause?: unknown;
  };
  return (
    typeof code === "number" ||
    errors !== undefined ||
    groups !== undefined ||
    (cause instanceof Error && isAnswer(cause))
  );
}
