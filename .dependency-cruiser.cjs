// Who may import whom. The same rules are run over a planted fixture by test/house/imports.test.ts.
const ROOMS = "^(schemas|services|processors)/";
const CLIENTS = ["kafkajs", "pg", "@kafkajs/[^/]+", "avsc", "fastify", "jose", "prom-client", "pino"];
const TESTS = "[.]test[.]ts$";

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      comment: "a cycle is two files with one reason to change; type imports count",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "resolvable",
      comment: "the import leads nowhere: the rules below would not see it",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "declared-dependencies",
      comment: "what shipped code imports is in `dependencies` of package.json",
      severity: "error",
      from: { path: ROOMS, pathNot: TESTS },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "schemas-stand-alone",
      comment: "contracts are at the bottom: they import nothing of ours",
      severity: "error",
      from: { path: "^schemas/" },
      to: { path: "^(services|processors|test|deploy)/" },
    },
    {
      name: "processors-stay-in-their-room",
      comment: "a processor sees schemas, the kit and itself; effects are handed to it",
      severity: "error",
      from: { path: "^processors/([^/]+)/" },
      to: { path: "^(services|processors|deploy)/", pathNot: "^processors/(kit|$1)/" },
    },
    {
      name: "services-stay-in-their-room",
      comment: "services meet through topics, tables or schemas; platform is shared; app wires them",
      severity: "error",
      from: { path: "^services/([^/]+)/", pathNot: "^services/app/" },
      to: { path: "^services/", pathNot: "^services/(platform|$1)/" },
    },
    {
      name: "services-are-handed-processors",
      comment: "host and replay get processors by value; read-side rooms may import queries.ts, nothing else",
      severity: "error",
      from: { path: "^services/", pathNot: "^services/(app|console|cli|exporters)/" },
      to: { path: "^processors/", pathNot: "^processors/kit/" },
    },
    {
      name: "read-side-imports-only-queries",
      comment: "console, cli and exporters read projections through processors/<name>/queries.ts",
      severity: "error",
      from: { path: "^services/(console|cli|exporters)/" },
      to: { path: "^processors/", pathNot: "^processors/(kit/|[^/]+/queries[.]ts$)" },
    },
    {
      name: "kit-only-for-consumers",
      comment: "the kit is for processors and for the rooms that run or read them",
      severity: "error",
      from: { path: "^services/", pathNot: "^services/(app|host|replay|console|cli|exporters)/" },
      to: { path: "^processors/kit/" },
    },
    {
      name: "kit-knows-no-processor",
      severity: "error",
      from: { path: "^processors/kit/" },
      to: { path: "^processors/", pathNot: "^processors/kit/" },
    },
    {
      name: "siblings-do-not-meet",
      comment: "an adapter, provider or connector never sees a sibling folder",
      severity: "error",
      from: { path: "^services/(adapters|ingress/providers|execution/connectors)/([^/]+)/" },
      to: { path: "^services/$1/[^/]+/", pathNot: "^services/$1/$2/" },
    },
    {
      name: "provider-files-do-not-meet",
      comment: "the same for providers and connectors that are one file each",
      severity: "error",
      from: {
        path: "^services/(ingress/providers|execution/connectors)/([^/]+)[.]ts$",
        pathNot: [TESTS, "/(provider|connector|catalog|registry)[.]ts$"],
      },
      to: {
        path: "^services/$1/",
        pathNot: ["^services/$1/$2[.]ts$", "/(provider|connector)[.]ts$"],
      },
    },
    {
      name: "app-is-the-root",
      comment: "services/app wires rooms together; nobody imports it",
      severity: "error",
      from: { path: ROOMS, pathNot: "^services/app/" },
      to: { path: "^services/app/" },
    },
    {
      name: "nobody-imports-main",
      comment: "main.ts is where a process starts",
      severity: "error",
      from: {},
      to: { path: "(^|/)main[.]ts$" },
    },
    {
      name: "clients-only-in-platform",
      comment:
        "Kafka, Postgres, registry, HTTP, token, metric and log clients are known by services/platform alone",
      severity: "error",
      from: { path: ROOMS, pathNot: ["^services/platform/", TESTS] },
      to: { path: `(^|/)node_modules/(@types/)?(${CLIENTS.join("|")})/` },
    },
    {
      name: "kafkajs-only-in-kafka-files",
      comment: "another Kafka client must be able to replace platform/kafka*.ts",
      severity: "error",
      from: { path: "^services/platform/", pathNot: ["^services/platform/kafka[^/]*([.]ts$|/)", TESTS] },
      to: { path: "(^|/)node_modules/kafkajs/" },
    },
    {
      name: "tests-are-not-shipped",
      comment: "product code imports neither test/ nor a *.test.ts",
      severity: "error",
      from: { path: ROOMS, pathNot: TESTS },
      to: { path: ["^test/", TESTS] },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // A plugin is laid beside its parts when it is installed; here its imports lead nowhere.
    exclude: { path: "^(dist|[.]fabric|coverage|test/fixtures/house|services/adapters/[^/]+/plugin)/" },
    tsPreCompilationDeps: true,
    detectJSDocImports: false,
    tsConfig: { fileName: "tsconfig.json" },
    combinedDependencies: false,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
      extensions: [".ts", ".js", ".mjs", ".cjs", ".json", ".d.ts"],
    },
  },
};
