import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";

/** Label values by name. */
export type Labels = Readonly<Record<string, string | number>>;

/** The metrics of one process, all named `fabric_…`, in Prometheus' text form. */
export interface Metrics {
  readonly contentType: string;
  /** The text that `/metrics` answers. */
  render(): Promise<string>;
  counter(
    name: string,
    help: string,
    labelNames?: readonly string[],
  ): { add(labels?: Labels, by?: number): void };
  /** `observe` is asked at each scrape, when given. */
  gauge(
    name: string,
    help: string,
    labelNames?: readonly string[],
    observe?: (set: (value: number, labels?: Labels) => void) => void | Promise<void>,
  ): { set(value: number, labels?: Labels): void };
  /** Values in seconds unless the name says otherwise. */
  histogram(
    name: string,
    help: string,
    labelNames?: readonly string[],
    buckets?: readonly number[],
  ): { observe(value: number, labels?: Labels): void };
}

/** From half a millisecond to five seconds: the gate's budget and a broker's worst day. */
const latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** Makes an empty registry; asking for the same name twice gives the same metric. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry, prefix: "fabric_" });
  function known<M>(name: string, make: () => M): M {
    return (registry.getSingleMetric(name) as M | undefined) ?? make();
  }
  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    counter(name, help, labelNames = []) {
      const metric = known(
        name,
        () => new Counter({ name, help, labelNames: [...labelNames], registers: [registry] }),
      );
      return { add: (labels = {}, by = 1) => metric.inc(labels, by) };
    },
    gauge(name, help, labelNames = [], observe) {
      const metric = known(
        name,
        () =>
          new Gauge({
            name,
            help,
            labelNames: [...labelNames],
            registers: [registry],
            ...(observe === undefined
              ? {}
              : {
                  collect(this: Gauge) {
                    return observe((value, labels = {}) => this.set(labels, value));
                  },
                }),
          }),
      );
      return { set: (value, labels = {}) => metric.set(labels, value) };
    },
    histogram(name, help, labelNames = [], buckets = latencyBuckets) {
      const metric = known(
        name,
        () =>
          new Histogram({
            name,
            help,
            labelNames: [...labelNames],
            buckets: [...buckets],
            registers: [registry],
          }),
      );
      return { observe: (value, labels = {}) => metric.observe(labels, value) };
    },
  };
}
