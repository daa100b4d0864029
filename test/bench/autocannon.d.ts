/** The part of autocannon that the benchmark of the gate uses; the package has no types. */
declare module "autocannon" {
  import type { EventEmitter } from "node:events";

  export interface RequestParts {
    readonly method?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  }
  export interface Client {
    /** `setupRequest` is called for every request that is sent, `onResponse` for its answer. */
    setRequests(
      requests: readonly (RequestParts & {
        setupRequest(request: RequestParts): RequestParts;
        onResponse(status: number, body: string): void;
      })[],
    ): void;
  }
  export interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly setupClient?: (client: Client) => void;
  }
  export interface Result {
    readonly requests: { readonly average: number; readonly total: number };
    readonly errors: number;
    readonly timeouts: number;
    readonly non2xx: number;
    readonly "2xx": number;
    /** Seconds. */
    readonly duration: number;
  }
  /** Emits "response" with (client, status, bytes, milliseconds). */
  export interface Instance extends EventEmitter, PromiseLike<Result> {
    stop(): void;
  }
  export default function autocannon(options: Options): Instance;
}
