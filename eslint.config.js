import tseslint from "typescript-eslint";

/**
 * Files that judge or translate values: no effect, no clock, no randomness; these are handed in.
 * A new file of these rooms is pure until it is named in EFFECTS.
 */
const PURE = [
  "schemas/**/*.ts",
  "processors/**/*.ts",
  "services/gate/{classif*,plan,counters,signals,built-in-signals,answer,ruling,group-ledger,group-change,call-change,call-facts}.ts",
  "services/gate/{stages,shell,sql}/**/*.ts",
  "services/gate/policy/{cedar-*,duration,json-schema,parse-*,problem,rule-*,run-cases,tool-pattern,when,yaml-file}.ts",
  "services/adapters/*/{translate,capabilities,render,words}*.ts",
];
const EFFECTS = ["processors/**/store.ts", "**/*.test.ts"];

const EFFECT_MODULES = [
  "fs",
  "fs/promises",
  "net",
  "http",
  "https",
  "http2",
  "tls",
  "dgram",
  "dns",
  "process",
  "child_process",
  "worker_threads",
  "os",
  "timers",
  "timers/promises",
];

const processEnv = {
  selector: [
    "MemberExpression[object.name='process'][property.name='env']",
    "MemberExpression[object.property.name='process'][property.name='env']",
    "VariableDeclarator[init.name='process'] > ObjectPattern > Property[key.name='env']",
    "ImportDeclaration[source.value=/^(node:)?process$/] > ImportSpecifier[imported.name='env']",
  ].join(", "),
  message: "configuration is parsed once: read it through services/platform/config.ts",
};
const impurities = [
  {
    selector:
      "MemberExpression[object.name='Date'][property.name='now'], MemberExpression[object.name='performance'][property.name='now']",
    message: "a pure file reads no clock: take the time as an argument",
  },
  {
    selector: "NewExpression[callee.name='Date'][arguments.length=0], CallExpression[callee.name='Date']",
    message: "a pure file reads no clock: take the time as an argument",
  },
  {
    selector: "MemberExpression[object.name='Math'][property.name='random']",
    message: "a pure file has no randomness: take the value as an argument",
  },
  {
    selector:
      "CallExpression[callee.property.name=/^(randomUUID|randomBytes|randomInt|getRandomValues)$/], CallExpression[callee.name=/^(randomUUID|randomBytes|randomInt)$/]",
    message: "a pure file has no randomness: take the id as an argument",
  },
  {
    selector: "CallExpression[callee.name=/^(setTimeout|setInterval|setImmediate|fetch)$/]",
    message: "a pure file has no effects: return a value and let the caller act",
  },
];

export default tseslint.config(
  {
    ignores: [
      "dist/**",
      "node_modules/**",
      ".fabric/**",
      "coverage/**",
      "schemas/generated/**",
      "test/fixtures/house/**",
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.base],
    languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": [
        "error",
        { checksVoidReturn: { arguments: false, attributes: false } },
      ],
      "@typescript-eslint/await-thenable": "error",
      "@typescript-eslint/return-await": ["error", "error-handling-correctness-only"],
      "@typescript-eslint/only-throw-error": "error",
      "@typescript-eslint/prefer-promise-reject-errors": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "separate-type-imports" }],
      "@typescript-eslint/no-unsafe-argument": "error",
      "@typescript-eslint/no-unsafe-assignment": "error",
      "@typescript-eslint/no-unsafe-call": "error",
      "@typescript-eslint/no-unsafe-member-access": "error",
      "@typescript-eslint/no-unsafe-return": "error",
      "@typescript-eslint/no-base-to-string": "error",
      "@typescript-eslint/no-unnecessary-type-assertion": "error",
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true },
      ],
      "@typescript-eslint/ban-ts-comment": [
        "error",
        { "ts-expect-error": "allow-with-description", minimumDescriptionLength: 10 },
      ],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "no-empty": "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-restricted-syntax": ["error", processEnv],
    },
  },
  {
    files: ["services/cli/**", "services/app/**", "test/bench/**", "test/harness/**", "test/fault/**"],
    rules: { "no-console": "off" },
  },
  {
    // stack/machine.ts looks for a JDK on PATH and hands the environment to child processes: no configuration.
    files: ["services/platform/config.ts", "services/stack/machine.ts", "test/**", "**/*.test.ts"],
    rules: { "no-restricted-syntax": "off" },
  },
  {
    files: PURE,
    ignores: EFFECTS,
    rules: {
      "no-restricted-syntax": ["error", processEnv, ...impurities],
      "no-restricted-imports": [
        "error",
        {
          paths: EFFECT_MODULES.flatMap((name) => [`node:${name}`, name]).map((name) => ({
            name,
            message: "a pure file has no effects: hand in what it needs",
          })),
        },
      ],
      "no-restricted-globals": [
        "error",
        { name: "process", message: "a pure file does not see the process" },
      ],
    },
  },
);
