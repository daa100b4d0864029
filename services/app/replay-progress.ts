import type { Screen } from "../cli/screen.ts";
import type { RunProgress } from "../replay/open-runs.ts";

const barWidth = 30;
/** Lines of a log say how it goes; they are no film. */
const lineEveryMs = 10_000;

/** `[██████░░░░]  61 %  612,000 of 1,000,000 records, 48,200/s, 8 s left`. */
export function toProgressText(
  { done, all, reasons }: RunProgress,
  perSecond: number,
  withBar: boolean,
): string {
  const share = all === 0n ? 1 : Number(done) / Number(all);
  const filled = Math.floor(share * barWidth);
  const bar = withBar ? `[${"█".repeat(filled)}${"░".repeat(barWidth - filled)}] ` : "";
  const left =
    perSecond > 0 && done < all ? `, ${String(Math.ceil(Number(all - done) / perSecond))} s left` : "";
  const rate = perSecond > 0 ? `, ${Math.round(perSecond).toLocaleString("en-US")}/s` : "";
  const waits = reasons.length === 0 ? "" : `; waits: ${reasons.join("; ")}`;
  return `${bar}${String(Math.floor(share * 100)).padStart(3)} %  ${done.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} records${rate}${left}${waits}`;
}

/** A bar on a terminal that somebody watches, a line now and then elsewhere. */
export function progressLine(
  screen: Screen,
  nowMs: () => number,
): { show(progress: RunProgress): void; end(): void } {
  let beganMs: number | null = null;
  let beganAt = 0n;
  let saidMs = 0;
  let saidDone = false;
  let isOpen = false;
  return {
    show(progress) {
      const now = nowMs();
      if (beganMs === null) {
        beganMs = now;
        beganAt = progress.done;
      }
      const seconds = (now - beganMs) / 1_000;
      const perSecond = seconds < 1 ? 0 : Number(progress.done - beganAt) / seconds;
      const isDone = progress.done >= progress.all;
      if (isDone && saidDone) return;
      if (screen.status !== undefined) {
        screen.status(toProgressText(progress, perSecond, true));
        isOpen = true;
      } else if (isDone || now - saidMs >= lineEveryMs) {
        screen.progress(toProgressText(progress, perSecond, false));
        saidMs = now;
      }
      saidDone = isDone;
    },
    end() {
      if (isOpen) screen.progress("");
    },
  };
}
