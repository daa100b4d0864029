/** Which operands of a program are paths that it writes or reads. */
export type PathShape = {
  /** Options that take a value, so that the value is no operand. */
  readonly values: string;
  /** `all` operands, the `last`, those `after` the first, or `none`. */
  readonly writes: "all" | "last" | "after_first" | "none";
  readonly extent: "file" | "tree";
  /** Operands that are read: `all`, all but the last, those after the first. */
  readonly reads?: "all" | "but_last" | "after_first";
  /** Options whose value is read. */
  readonly inputs?: string;
  /** Options whose value is written. */
  readonly outputs?: string;
  /** An output that begins with `|` is a command line, and no file. */
  readonly pipes?: true;
  /** Options whose value is the directory that is written below. */
  readonly into?: string;
  /** Written only with one of these options; without it the operands are read. */
  readonly onlyWith?: string;
  /** Options after which nothing is written. */
  readonly unless?: string;
  /** `mv` removes what it moves. */
  readonly movesSources?: boolean;
};
