import { Fault } from "../../schemas/faults.ts";

/** One value that a question takes. */
export interface QuestionParameter {
  readonly name: string;
  readonly type: string;
  /** Undefined: it has to be given. */
  readonly fallback: string | undefined;
  readonly text: string;
}

/** A question as its file states it. */
export interface Question {
  readonly name: string;
  readonly question: string;
  readonly parameters: readonly QuestionParameter[];
  readonly columns: readonly { readonly name: string; readonly text: string }[];
  /** With parameters as `:'name'`, which psql understands too (`psql -v name=value -f file`). */
  readonly sql: string;
}

const headerLine = /^-- (question: |param |column )(.*)$/;
const parameterForm = /^([a-z_]+) ([a-z]+)(?: = '([^']*)')?: (.+)$/;
const columnForm = /^([a-z0-9_]+): (.+)$/;
const placeholder = /:'([a-z_]+)'/g;

/** Reads a question file. Throws INTERNAL on one out of form: the files ship, and a test reads each. */
export function parseQuestion(name: string, text: string): Question {
  const wrong = (what: string): Fault => new Fault("INTERNAL", `question \`${name}\`: ${what}`);
  const parameters: QuestionParameter[] = [];
  const columns: { name: string; text: string }[] = [];
  let question: string | undefined;
  for (const line of text.split("\n")) {
    const [, kind, rest = ""] = headerLine.exec(line) ?? [];
    if (kind === "question: ") question = rest;
    if (kind === "param ") {
      const [, parameter, type, fallback, about] = parameterForm.exec(rest) ?? [];
      if (parameter === undefined || type === undefined || about === undefined)
        throw wrong(`\`${line}\` is no parameter`);
      parameters.push({ name: parameter, type, fallback, text: about });
    }
    if (kind === "column ") {
      const [, column, about] = columnForm.exec(rest) ?? [];
      if (column === undefined || about === undefined) throw wrong(`\`${line}\` is no column`);
      columns.push({ name: column, text: about });
    }
  }
  const sql = text.replaceAll(/^--.*\n/gm, "").trim();
  if (question === undefined || columns.length === 0 || sql === "") throw wrong("its header is not whole");
  const used = new Set([...sql.matchAll(placeholder)].map((found) => found[1]));
  const stated = new Set(parameters.map((one) => one.name));
  if (used.size !== stated.size || [...stated].some((one) => !used.has(one)))
    throw wrong("it uses other parameters than it states");
  return { name, question, parameters, columns, sql };
}

/**
 * The statement with its values. Each parameter is sent apart from the text, so that no value is ever read as SQL.
 * Throws USAGE on a value that is missing or that the question does not take.
 */
export function bindQuestion(
  question: Question,
  given: Readonly<Record<string, string>>,
): { readonly text: string; readonly values: readonly string[] } {
  const stray = Object.keys(given).find((name) => !question.parameters.some((one) => one.name === name));
  const takes = question.parameters.map((one) => one.name).join(", ");
  if (stray !== undefined)
    throw new Fault("USAGE", `\`${question.name}\` takes no \`${stray}\`; it takes ${takes}`);
  const missing = question.parameters.find(
    (one) => one.fallback === undefined && given[one.name] === undefined,
  );
  if (missing !== undefined)
    throw new Fault("USAGE", `\`${question.name}\` needs --param ${missing.name}=…: ${missing.text}`);
  const values = question.parameters.map((one) => given[one.name] ?? one.fallback ?? "");
  const text = question.sql.replaceAll(placeholder, (_whole, name: string) => {
    const index = question.parameters.findIndex((one) => one.name === name);
    const isText = question.parameters[index]?.type === "text";
    return `$${String(index + 1)}${isText ? "::text" : ""}`;
  });
  return { text, values };
}
