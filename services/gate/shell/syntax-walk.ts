import { toTextVariables } from "./arithmetic.ts";
import { toBoundedVariables } from "./bounded-variables.ts";
import { toConstants } from "./constants.ts";
import { findDroppedText } from "./grammar-gaps.ts";
import { isNameFilter, toListedNames } from "./hidden-reads.ts";
import { toHereDocument } from "./here-document.ts";
import { toSource } from "./launch.ts";
import type { Assignment, ParsedCommand, Word } from "./parsed-command.ts";
import { resolvePath, toPaths, toReads } from "./path-words.ts";
import type { Directories } from "./path-words.ts";
import { endsWord, hidesExpansion, toBacktickCode } from "./quoting.ts";
import { toReadNames } from "./read-loop.ts";
import type { BashParser, SyntaxNode } from "./syntax-tree.ts";
import { MAX_TEXT, refuseText } from "./text-guards.ts";
import { toSingleWord, toWords } from "./words.ts";
import type { WordScope } from "./words.ts";

import { CommandRunner } from "./command-runner.ts";
import { CHANGES_DIRECTORY, dropName, toBareScript, toRuns, union, withoutTail } from "./place.ts";
import type { ParseContext, Place, Script, Stdin, Tail } from "./place.ts";

const MAX_CODE_DEPTH = 12;
const MAX_SCRIPTS = 400;
const MAX_FINDINGS = 2_000;
/** Most that is read of one command line with all the code that stands in it: a variable can hold a long text for many. */
const MAX_READ_CHARS = 2 * MAX_TEXT;
/** Most scripts of one command line that are no valid bash: those are what takes the grammar long. */
const MAX_BROKEN_SCRIPTS = 3;

/** One walk over one command line: steps wait on a stack of its own, so that no nesting can overflow the real one. */
export class SyntaxWalk extends CommandRunner {
  private readonly parser: BashParser;
  private readonly assignments: Assignment[] = [];
  private scripts = 0;
  private brokenScripts = 0;
  private readChars = 0;

  constructor(parser: BashParser, context: ParseContext) {
    super(context);
    this.parser = parser;
  }

  run(text: string): ParsedCommand {
    this.runCode(text, {
      shell: {
        directories: this.context.cwd === undefined ? undefined : [resolvePath("/", this.context.cwd)],
        lastCd: undefined,
      },
      script: toBareScript(""),
      within: [],
      wrappers: [],
      where: "here",
      stdin: { kind: "inherited" },
      codeDepth: 0,
      isShell: true,
      dialect: "bash",
      isHomeKnown: true,
    });
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) {
      step();
      if (this.commands.length + this.opaque.size + this.writes.size > MAX_FINDINGS) {
        this.report("too_large", "too many parts");
        break;
      }
    }
    this.followLinks();
    const climbs = this.links.toClimbs(
      new Set([...this.reads, ...[...this.writes.values()].map(({ path }) => path), ...this.operands]),
    );
    return {
      commands: this.commands,
      writes: [...this.writes.values()],
      reads: [...this.reads],
      unresolvedReads: [...this.unresolvedReads],
      unknownReads: [...this.unknownReads],
      operands: [...this.operands],
      assignments: this.assignments,
      opaque: [...this.opaque.values()],
      ...(climbs.length === 0 ? {} : { climbs }),
    };
  }

  private visitAll(nodes: readonly SyntaxNode[], place: Place): void {
    for (let at = nodes.length - 1; at >= 0; at -= 1) {
      const node = nodes[at];
      if (node !== undefined) this.steps.push(() => this.visit(node, place));
    }
  }

  protected override runCode(text: string, place: Place): void {
    this.scripts += 1;
    if (place.codeDepth > MAX_CODE_DEPTH || this.scripts > MAX_SCRIPTS) {
      this.report("too_deep", text);
      return;
    }
    const refusal = refuseText(text);
    if (refusal !== undefined) {
      this.report(refusal.kind, refusal.detail);
      return;
    }
    this.readChars += text.length;
    if (this.readChars > MAX_READ_CHARS || this.brokenScripts >= MAX_BROKEN_SCRIPTS) {
      this.report("too_large", text);
      return;
    }
    const parsed = this.parser.parse(text);
    if (!parsed.ok) {
      this.brokenScripts += 1;
      this.report(parsed.fault, text);
      return;
    }
    const dropped = findDroppedText(parsed.root, text);
    if (dropped !== undefined) this.report("grammar_mismatch", dropped.text);
    const bare = toBareScript(text);
    const constants = toConstants(parsed.root, this.toScope({ ...place, script: bare }, 0)).slice(0, 64);
    const script: Script = {
      ...bare,
      constants,
      bounded: toBoundedVariables(
        parsed.root,
        this.toScope({ ...place, script: { ...bare, constants } }, text.length),
      ),
      textVariables: toTextVariables(parsed.root, text),
    };
    this.then(() =>
      this.visit(parsed.root, {
        ...place,
        script,
        codeDepth: place.codeDepth + 1,
        isHomeKnown: place.isHomeKnown && !script.setsHome,
      }),
    );
  }

  private toScope(place: Place, at: number): WordScope {
    const { source, constants, splitsOnBlanks, setsHome, bounded } = place.script;
    return {
      source,
      bounded,
      read: place.read,
      keepsBraces: place.dialect === "posix",
      constants: new Map(
        constants.filter(({ from }) => from <= at).map(({ name, value }): [string, string] => [name, value]),
      ),
      // null: it is another one than the caller's.
      home: place.isHomeKnown && !setsHome && place.where === "here" ? this.context.home : null,
      splitsOnBlanks,
      onMismatch: (detail) => this.report("grammar_mismatch", detail),
    };
  }

  private visit(node: SyntaxNode, place: Place): void {
    const source = place.script.source;
    const text = (): string => source.slice(node.start, node.end);
    this.judgeDialect(node, place);
    switch (node.type) {
      case "comment":
      case "raw_string":
      case "heredoc_start":
      case "heredoc_end":
        return;
      case "command":
        this.visitCommand(node, place, []);
        return;
      case "redirected_statement":
        this.visitRedirected(node, place);
        return;
      case "pipeline":
        this.visitPipeline(node, place);
        return;
      case "list":
        this.visitList(node, place);
        return;
      case "negated_command":
        this.then(
          () => this.visitAll(node.children, place),
          () => {
            place.shell.lastCd = undefined;
          },
        );
        return;
      case "subshell":
        this.visitAll(node.children, this.toCopy(place, "subshell"));
        return;
      case "process_substitution":
        this.visitAll(node.children, {
          ...this.toCopy(place, "process_substitution"),
          stdin: { kind: "pipe" },
        });
        return;
      case "command_substitution":
        this.visitSubstitution(node, place);
        return;
      case "function_definition":
        this.visitFunction(node, place);
        return;
      case "while_statement":
      case "until_statement":
      case "for_statement":
      case "c_style_for_statement":
      case "select_statement": {
        if (CHANGES_DIRECTORY.test(text())) place.shell.directories = undefined;
        else this.keepsDirectories = true;
        const variable = node.children.find(({ field }) => field === "variable");
        if (variable !== undefined) this.judgeName(source.slice(variable.start, variable.end));
        if (node.type === "c_style_for_statement")
          this.judgeArithmetic(text().replace(/\bdo\b[\s\S]*|\{[\s\S]*/, ""), place);
        const read = toReadNames(text(), place);
        const around =
          read === undefined
            ? place
            : { ...place, read: new Map([...(place.read ?? []), [read.name, read.values] as const]) };
        this.visitAll(node.children, this.toInner(around, "loop"));
        return;
      }
      case "if_statement":
      case "case_statement":
        this.visitAll(node.children, this.toInner(place, "condition"));
        return;
      case "declaration_command":
      case "unset_command":
        this.visitDeclaration(node, place);
        return;
      case "test_command":
        this.visitTest(node, place);
        return;
      case "variable_assignment":
        this.visitAssignment(node, place);
        return;
      case "arithmetic_expansion":
        this.judgeArithmetic(text(), place);
        break;
      case "compound_statement":
        if (text().startsWith("((")) this.judgeArithmetic(text(), place);
        break;
      case "subscript":
        if (!/\[[@*]\]$/.test(text())) this.judgeArithmetic(text(), place);
        break;
      case "expansion":
        if (/@P\}$/.test(text())) this.report("prompt_expansion", text());
        if (/^\$\{!/.test(text()) && !/^\$\{![A-Za-z_]\w*([@*]|\[[@*]\])\}$/.test(text()))
          this.report("prompt_expansion", text());
        if (/^\$\{\w+:[^-+?=]/.test(text())) this.judgeArithmetic(text().replace(/^\$\{\w+/, ""), place);
        break;
      case "string":
      case "translated_string":
        toSingleWord(node, this.toScope(place, node.start));
        break;
      case "file_redirect":
        this.judgeRedirect(node, place);
        break;
      case "heredoc_redirect":
        this.visitHereRest(node, place);
        return;
      case ";;":
      case ";&":
      case ";;&":
        // The grammar takes them outside of `case` as well, where bash refuses the line.
        this.report("grammar_mismatch", text());
        return;
      case "case_item":
        this.visitAll(
          node.children.filter(({ type }) => !/^;;?&?$/.test(type) || type === ";"),
          place,
        );
        return;
      case "ERROR":
        this.report("syntax_error", text());
        return;
      default:
    }
    if (node.children.length > 0) this.visitAll(node.children, place);
    else if (
      node.type !== text() &&
      node.type !== "heredoc_body" &&
      node.type !== "ansi_c_string" &&
      node.type !== "string_content" &&
      (hidesExpansion(text()) || (node.type === "word" && endsWord(text())))
    )
      this.report("grammar_mismatch", text());
  }

  /** Words of bash that another shell may take for the names of programs. */
  private judgeDialect(node: SyntaxNode, place: Place): void {
    if (place.dialect !== "posix") return;
    const text = place.script.source.slice(node.start, node.end);
    if (
      /^(ansi_c_string|translated_string|c_style_for_statement)$/.test(node.type) ||
      (node.type === "compound_statement" && text.startsWith("((")) ||
      (node.type === "test_command" && !/^\[\s/.test(text)) ||
      (node.type === "function_definition" && text.startsWith("function"))
    )
      this.report("foreign_shell", text);
  }

  private visitLast(node: SyntaxNode, place: Place, tail: Tail | undefined): void {
    if (tail === undefined) this.visit(node, place);
    else if (/^(pipeline|list)$/.test(node.type)) this.visit(node, { ...place, tail });
    else {
      if (node.type === "negated_command")
        this.report("grammar_mismatch", "a redirection behind a negated chain");
      const inner = tail.stdin === undefined ? place : { ...place, stdin: tail.stdin };
      this.then(
        () => this.visitAll(tail.redirects, place),
        () => this.visit(node, inner),
      );
    }
  }

  private visitPipeline(node: SyntaxNode, place: Place): void {
    const stages = node.children.filter(({ type }) => type !== "|" && type !== "|&");
    const steps = stages.map((child, index) => {
      const inner = this.toCopy(withoutTail(place), "pipe");
      const before = stages[index - 1];
      const stage: Place =
        before === undefined
          ? inner
          : {
              ...inner,
              stdin: {
                kind: "pipe",
                ...this.toPrinted(before, place),
                ...this.toNames(stages.slice(0, index), place),
              },
            };
      const isLast = index === stages.length - 1;
      return () => (isLast ? this.visitLast(child, stage, place.tail) : this.visit(child, stage));
    });
    this.then(
      () => this.then(...steps),
      () => {
        place.shell.lastCd = undefined;
      },
    );
  }

  /** What a command prints for the next one of its pipe, when it is a plain `echo` or `printf` of fixed words. */
  private toPrinted(node: SyntaxNode, place: Place): { readonly piped?: Word } {
    if (node.type !== "command" || node.children.some(({ type }) => /_redirect$/.test(type))) return {};
    const words = toRuns(node.children).flatMap((run) => toWords(run, this.toScope(place, node.start)));
    const texts = words.flatMap((word) => (word.kind === "literal" ? [word.text] : []));
    const [program, ...rest] = texts;
    if (texts.length !== words.length || rest.some((text) => text.includes("\\"))) return {};
    if (program === "echo" && rest[0]?.startsWith("-") !== true)
      return { piped: { kind: "literal", text: rest.join(" ") } };
    if (program === "printf" && rest.length === 1 && /^[^%-][^%]*$/.test(rest[0] ?? ""))
      return { piped: { kind: "literal", text: rest[0] ?? "" } };
    return {};
  }

  /** The files whose names come out of the stages in front, where the text bounds them. */
  private toNames(stages: readonly SyntaxNode[], place: Place): { readonly names?: readonly Word[] } {
    const [first, ...filters] = stages.map((node) =>
      node.type === "command" && !node.children.some(({ type }) => /_redirect$/.test(type))
        ? toRuns(node.children).flatMap((run) => toWords(run, this.toScope(place, node.start)))
        : [],
    );
    const [head, ...args] = first ?? [];
    if (head?.kind !== "literal" || this.functions.size > 0 || !filters.every(isNameFilter)) return {};
    const names = toListedNames(head.text, args);
    return names === undefined ? {} : { names };
  }

  /** After `cd a &&` only the new directory is left; after the list both may be. */
  private visitList(node: SyntaxNode, place: Place): void {
    const [left, operator, ...right] = node.children;
    if (left === undefined) return;
    let before: Directories;
    this.then(
      () => {
        place.shell.lastCd = undefined;
        this.visit(left, withoutTail(place));
      },
      () => {
        before = place.shell.directories;
        if (operator?.type === "&&" && place.shell.lastCd !== undefined)
          place.shell.directories = place.shell.lastCd;
        place.shell.lastCd = undefined;
        this.then(...right.map((child) => () => this.visitLast(child, withoutTail(place), place.tail)));
      },
      () => {
        place.shell.directories = union(before, place.shell.directories);
        if (operator?.type !== "&&") place.shell.lastCd = undefined;
      },
    );
  }

  private visitSubstitution(node: SyntaxNode, place: Place): void {
    const inner: Place = this.toCopy(place, "substitution");
    const source = place.script.source;
    const text = source.slice(node.start, node.end);
    if (text.startsWith("`")) {
      const code = text.slice(1, -1);
      if (/(^|[^\\])(\\\\)*`/.test(code)) this.report("grammar_mismatch", text);
      else if (code.includes("\\")) {
        // Between back-ticks one level of backslashes is removed first: `\$(rm)` runs rm, which the tree does not show.
        const isDoubled = toBacktickCode(code, true) !== toBacktickCode(code, false);
        if (isDoubled) this.report("grammar_mismatch", text);
        else this.runCode(toBacktickCode(code, false), inner);
        return;
      }
    }
    // `$(<file)` reads.
    this.visitAll(node.children, inner);
  }

  private visitFunction(node: SyntaxNode, place: Place): void {
    const source = place.script.source;
    const name = node.children.find(({ field }) => field === "name");
    if (name !== undefined) this.functions.add(source.slice(name.start, name.end));
    // The body runs wherever the function is called from.
    if (CHANGES_DIRECTORY.test(source)) place.shell.directories = undefined;
    else this.keepsDirectories = true;
    this.visitAll(
      node.children.filter(({ field }) => field !== "name"),
      {
        ...this.toCopy(place, "function"),
        stdin: { kind: "inherited" },
      },
    );
  }

  private visitRedirected(node: SyntaxNode, place: Place): void {
    const source = place.script.source;
    // The grammar names no field for `<<<` behind a loop.
    const redirects = node.children.filter(
      ({ field, type }) => field === "redirect" || type === "herestring_redirect",
    );
    const body = node.children.find(({ field }) => field === "body");
    const stdin = this.toStdin(redirects, place);
    const late = redirects
      .filter(({ type }) => type === "heredoc_redirect")
      .flatMap(({ children }) => children.filter(({ field }) => field === "argument"));
    const isSpread = body !== undefined && /^(pipeline|list)$/.test(body.type);
    const plain = redirects.filter(({ type }) => type !== "heredoc_redirect");
    const inner: Place = isSpread
      ? { ...place, tail: { stdin, redirects: plain } }
      : stdin === undefined
        ? place
        : { ...place, stdin };
    this.then(
      () => {
        if (!isSpread) this.visitAll(plain, place);
      },
      () => {
        const first = redirects[0];
        const gap =
          body === undefined || first === undefined ? "" : source.slice(body.end, first.start).trim();
        const dash: Word[] = gap === "-" ? [{ kind: "literal", text: "-" }] : [];
        if (dash.length > 0 && body?.type !== "command") this.report("grammar_mismatch", "- <<");
        if (body?.type === "command") this.visitCommand(body, inner, late, dash);
        else if (body !== undefined) {
          if (late.length > 0) this.report("grammar_mismatch", "words behind a here-document");
          this.visit(body, inner);
        }
      },
      () =>
        this.visitAll(
          redirects.filter(({ type }) => type === "heredoc_redirect"),
          place,
        ),
    );
  }

  private toStdin(redirects: readonly SyntaxNode[], place: Place): Stdin | undefined {
    const source = place.script.source;
    let stdin: Stdin | undefined;
    const documents = redirects.filter(({ type }) => /^(heredoc|herestring)_redirect$/.test(type));
    if (documents.length > 1) this.report("grammar_mismatch", "several here-documents");
    for (const redirect of redirects) {
      const operator = redirect.children.find(({ type }) => /^(<|<&|<>)$/.test(type));
      if (redirect.type === "file_redirect" && operator !== undefined) stdin = { kind: "file" };
      if (redirect.type === "heredoc_redirect")
        stdin = { kind: "heredoc", text: toHereDocument(redirect, source).text };
      const value = redirect.children.find(({ type }) => type !== "<<<" && type !== "file_descriptor");
      if (redirect.type === "herestring_redirect" && value !== undefined)
        stdin = { kind: "heredoc", text: toSingleWord(value, this.toScope(place, value.start)) };
    }
    return stdin;
  }

  /** A here-document's body, and everything that the grammar puts behind its operator: pipes, lists, redirections. */
  private visitHereRest(node: SyntaxNode, place: Place): void {
    const document = toHereDocument(node, place.script.source);
    if (document.fault !== undefined)
      this.report(document.fault, place.script.source.slice(node.start, node.end));
    const rest = node.children.filter(({ field, type }) => field !== "argument" && type !== "heredoc_body");
    this.then(
      ...node.children
        .filter(({ field }) => field === "argument")
        .map((child) => () => this.visit(child, place)),
      ...rest.map(
        (child) => () =>
          this.visit(
            child,
            child.type === "pipeline" || (child.type === "command" && rest.some(({ type }) => type === "|"))
              ? { ...place, stdin: { kind: "pipe" } }
              : place,
          ),
      ),
      () => {
        if (!document.isQuoted && document.body !== undefined)
          this.visitAll(document.body.children, this.toInner(place, "heredoc"));
      },
    );
  }

  private judgeRedirect(node: SyntaxNode, place: Place): void {
    const source = place.script.source;
    const operator = node.children.find(
      ({ type, field }) => field !== "descriptor" && type !== "file_descriptor",
    );
    const targets = node.children.filter(({ field }) => field === "destination");
    const [target, ...extra] = targets;
    if (extra.length > 0) this.report("grammar_mismatch", source.slice(node.start, node.end));
    if (operator === undefined || target === undefined) return;
    const symbol = source.slice(operator.start, operator.end);
    const word = toSingleWord(target, this.toScope(place, target.start));
    const isDuplicate = /^(>&|<&)/.test(symbol);
    if (isDuplicate && (/^(\d+-?|-)$/.test(toSource(word)) || /^"?\$\{?\w+\}?"?-?$/.test(toSource(word))))
      return;
    this.links.noteClimb(word, place.shell.directories);
    const paths = toPaths(word, place.shell.directories);
    if (/^<$|^<&$/.test(symbol)) {
      const { reads, unresolvedReads, unknownReads } = toReads(word, place.shell.directories);
      for (const path of reads) this.reads.add(path);
      for (const text of unresolvedReads) this.unresolvedReads.add(text);
      for (const text of unknownReads) this.unknownReads.add(text);
      return;
    }
    if (target.type === "process_substitution") return;
    if (place.where !== "here") return;
    if (paths === undefined) this.report("unresolved_path", toSource(word), { isWrite: true });
    else for (const path of paths) this.addWrite({ path, extent: "file", by: symbol });
    if (paths?.some((path) => /^\/dev\/(tcp|udp)\//.test(path)) === true)
      this.report("environment", toSource(word));
  }

  private visitCommand(
    node: SyntaxNode,
    place: Place,
    late: readonly SyntaxNode[],
    dash: readonly Word[] = [],
  ): void {
    const source = place.script.source;
    const redirects = node.children.filter(({ type }) => /_redirect$/.test(type));
    const stdin = this.toStdin(redirects, place);
    const inner: Place = stdin === undefined ? place : { ...place, stdin };
    const assigned = node.children.filter(
      ({ type, field }) => type === "variable_assignment" && field !== "argument",
    );
    const parts = [
      ...node.children.filter((child) => !assigned.includes(child) && !redirects.includes(child)),
      ...late,
    ];
    for (const part of parts)
      if (/^(subshell|array)$/.test(part.type))
        this.report("grammar_mismatch", source.slice(part.start, part.end));
    let end = node.start;
    for (const child of node.children) {
      if (/(^|[^\\])\n/.test(source.slice(end, child.start)))
        this.report("grammar_mismatch", source.slice(node.start, node.end));
      end = child.end;
    }
    const scope = this.toScope(place, node.start);
    const isLate = (run: readonly SyntaxNode[]): boolean => late.some((word) => word === run[0]);
    const runs = toRuns(parts);
    const words = [
      // A name of a program is not made of braces.
      ...runs
        .filter((run) => !isLate(run))
        .flatMap((run, index) => toWords(run, index === 0 ? { ...scope, keepsBraces: true } : scope)),
      ...dash,
      ...runs.filter(isLate).flatMap((run) => toWords(run, scope)),
    ];
    const assignments = assigned.map((child) => this.toAssignment(child, scope));
    this.then(
      () =>
        this.visitAll(
          node.children
            .filter((child) => !/^heredoc/.test(child.type) && child.type !== "word")
            .flatMap((child) => (assigned.includes(child) ? child.children : [child])),
          place,
        ),
      () => this.judgeAssignments(assignments, inner),
      () => this.interpret(words, assignments, inner),
      () =>
        this.visitAll(
          redirects.filter(({ type }) => type === "heredoc_redirect"),
          place,
        ),
    );
  }

  private toAssignment(node: SyntaxNode, scope: WordScope): Assignment {
    const [target, , value] = node.children;
    return {
      name: target === undefined ? "" : scope.source.slice(target.start, target.end),
      value: value === undefined ? { kind: "literal", text: "" } : toSingleWord(value, scope),
    };
  }

  private visitAssignment(node: SyntaxNode, place: Place): void {
    const assignment = this.toAssignment(node, this.toScope(place, node.start));
    // The one in front of a command is judged with the command.
    this.assignments.push(assignment);
    this.judgeAssignments([assignment], place);
    this.visitAll(node.children, place);
  }

  private visitDeclaration(node: SyntaxNode, place: Place): void {
    const scope = this.toScope(place, node.start);
    const words = toRuns(node.children).flatMap((run) => toWords(run, scope));
    const assigned = words.slice(1).flatMap((word): Assignment[] => {
      const match = /^([A-Za-z_][\w]*)(?:\[[^\]]*\])?\+?=([\s\S]*)$/.exec(
        word.kind === "literal" ? word.text : word.prefix,
      );
      if (match?.[1] === undefined) return [];
      return [{ name: match[1], value: dropName(word) }];
    });
    this.assignments.push(...assigned);
    this.then(
      () =>
        this.visitAll(
          node.children.flatMap((child) => (child.type === "variable_assignment" ? child.children : [child])),
          place,
        ),
      () => this.judgeAssignments(assigned, place),
      () => this.interpret(words, [], place),
    );
  }

  private visitTest(node: SyntaxNode, place: Place): void {
    const text = place.script.source.slice(node.start, node.end);
    if (/\s-[vR]\s+\S*[[$`]/.test(text)) this.report("arithmetic_text", text);
    if (text.startsWith("[[") && /-(eq|ne|lt|le|gt|ge)\s/.test(text)) this.judgeArithmetic(text, place);
    if (!text.startsWith("((")) this.record("[", text.startsWith("[[") ? "[[" : "[", [], [], place);
    this.visitAll(node.children, place);
  }
}
