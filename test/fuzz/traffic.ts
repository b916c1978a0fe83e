import { Agent } from 'undici';
import type { FuzzAnswer, Judge } from './judge.ts';
import type { SentRequest } from './requests.ts';

/** Sends requests, judges each answer and counts it. */
export interface Traffic {
  /**
   * @param name the operation, for the counts
   * @returns undefined when there was no answer, which is a finding
   */
  ask(name: string, request: SentRequest): Promise<FuzzAnswer | undefined>;
  readonly counts: ReadonlyMap<string, ReadonlyMap<number, number>>;
  /** What was wrong, once each, with the first request that showed it. */
  readonly findings: ReadonlyMap<string, string>;
  note(finding: string, request: SentRequest): void;
  sent(): number;
  /** Runs this once, before as many requests were sent. */
  atSent(count: number, run: () => void): void;
  /** Ends it; requests that were not answered yet are aborted. */
  close(): Promise<void>;
}

const timeoutMs = 40_000;

export function createTraffic(url: string, judge: Judge): Traffic {
  const agent = new Agent({ connections: 200, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  const counts = new Map<string, Map<number, number>>();
  const findings = new Map<string, string>();
  const note = (finding: string, { path, headers, body }: SentRequest): void => {
    const key = finding.replaceAll(/[0-9a-f]{16,}/g, '…').slice(0, 300);
    const sent = `${path.slice(0, 300)} ${JSON.stringify(headers).slice(0, 2_000)} ${body?.subarray(0, 300).toString() ?? ''}`;
    if (!findings.has(key)) findings.set(key, sent);
  };
  const send = async ({ method, path, headers, body }: SentRequest): Promise<FuzzAnswer> => {
    const response = await agent.request({
      origin: url,
      method,
      path,
      headers: { ...headers } as Record<string, string | string[]>,
      body: method === 'GET' ? null : (body ?? null),
    });
    const answered = Object.entries(response.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    );
    const text = await response.body.text();
    return { status: response.statusCode, headers: new Headers(answered), text };
  };
  let sent = 0;
  let milestone: { readonly count: number; readonly run: () => void } | undefined;
  return {
    sent: () => sent,
    atSent(count, run) {
      milestone = { count, run };
    },
    counts,
    findings,
    note,
    async ask(name, request) {
      let answer: FuzzAnswer | undefined;
      sent += 1;
      if (sent === milestone?.count) milestone.run();
      try {
        answer = await send(request);
        for (const fault of judge(request, answer)) note(`${name} ${answer.status}: ${fault}`, request);
      } catch (error) {
        if (agent.destroyed) return undefined;
        const cause = error instanceof Error ? `${error.name} ${error.message}` : String(error);
        note(`${name}: no answer: ${cause}`, request);
      }
      const ofName = counts.get(name) ?? new Map<number, number>();
      counts.set(name, ofName.set(answer?.status ?? 0, (ofName.get(answer?.status ?? 0) ?? 0) + 1));
      return answer;
    },
    close: () => agent.destroy(),
  };
}
