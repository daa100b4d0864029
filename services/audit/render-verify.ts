import type { VerifyReport } from "./verify.ts";

/** The report as lines for a person. */
export function renderVerify(report: VerifyReport): string {
  const lines = [
    `${report.ok ? "ok" : "BROKEN"}       ${report.blocks} blocks, ${report.sealedRows} sealed rows (${report.erasedRows} erased), ${report.unsealedRows} too young to be sealed`,
  ];
  if (!report.headsChecked) {
    lines.push("heads        not compared with the topic: that whole blocks were cut off would not be seen");
  }
  for (const one of report.findings) {
    const block = one.block === null ? "" : ` block ${one.block}`;
    const row =
      one.row === null
        ? ""
        : `, ${one.row.topic}/${one.row.partition} offset ${one.row.offset}${one.row.eventId === null ? "" : ` (${one.row.eventId})`}`;
    lines.push(`${one.kind}: ${one.tenantId ?? "all tenants"}${block}${row}: ${one.detail}`);
  }
  return lines.join("\n");
}
