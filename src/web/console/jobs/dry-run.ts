import { html, type Html } from '../../../base/values/html.ts';
import { parseJobId } from '../../../base/values/job.ts';
import { refusals } from '../../../base/errors/refusal.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { type DryRun, dryRun, refuseDryRunByHead } from '../../../jobs/use-cases/dry-run.ts';
import { openRequest } from '../../../jobs/use-cases/job-request.ts';
import { noticeOf } from '../../pages/document.ts';
import { badge, field, form } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { jobsOf } from '../contexts.ts';
import { jobField, jobNamed } from '../words.ts';
import type { Console, OperatorVisit } from '../visit.ts';

const path = '/console/jobs/dry-run';

/** Whether a caller would be let through: nothing is charged, and no nonce is used. */
export function dryRunAction(
  console: Console,
  show: (visit: OperatorVisit, said: Html) => Promise<View>,
): void {
  console.act(
    path,
    {
      role: 'operator',
      action: 'dry_run',
      shownAt: '/console/jobs',
      subject: (_, fields) => fields.get('job') ?? undefined,
    },
    async (visit, { fields }) => {
      const context = jobsOf(visit);
      const [service = '', index = ''] = (fields.get('job') ?? '').trim().split('/', 2);
      const caller = fields.get('caller')?.trim() ?? '';
      const opened = openRequest(context, {
        requestId: visit.request.id,
        job: parseJobId(service, index),
        method: 'POST',
        path: `/x402/jobs/${service}/${index}`,
        contentType: undefined,
        declaredBytes: 0,
        payment: undefined,
        callerHeaders: {
          caller: caller === '' ? undefined : caller,
          signature: undefined,
          nonce: undefined,
          expiry: undefined,
        },
        redeliverySignature: undefined,
        clientAddress: addressOf(visit.request),
      });
      const run = refuseDryRunByHead(context, opened) ?? (await dryRun(context, opened, Buffer.alloc(0)));
      const said = verdictOf(run, jobNamed(visit.site, `${service}/${index}`));
      return show(visit, html`${said} ${dryRunForm(visit, fields)}`);
    },
  );
}

/** `typed`: of the last dry run. */
export function dryRunForm(visit: OperatorVisit, typed?: URLSearchParams): Html {
  const fields = html`${jobField(visit.site, { value: typed?.get('job') })}
    ${field({ label: 'Caller', name: 'caller', value: typed?.get('caller'), maxLength: 42, isOptional: true, autocomplete: 'off', hint: 'The address that would call a restricted job. Nothing has to prove it here.' })}
    <button>Try it</button>`;
  return html`<section class="sheet">
    <h2>${typed ? 'Another dry run' : 'Dry run'}</h2>
    <p>Shows whether a caller may call a job. Nothing is charged or called.</p>
    ${form(visit, path, fields)}
  </section>`;
}

function verdictOf({ verdict, isEnabled, checks }: DryRun, job: Html): Html {
  const isAllowed = verdict.kind === 'allowed';
  const text = isAllowed
    ? `Allowed${isEnabled ? '.' : ', once the job is enabled: it is not sold now.'}`
    : `Refused: ${refusals[verdict.code].sentence}`;
  return html`<section class="sheet" role="status">
    <h2>Dry run of ${job}</h2>
    ${noticeOf({ tone: isAllowed ? 'good' : 'bad', text })}
    ${
      checks.length > 0 &&
      html`<ul class="rows">
        ${checks.map(
          ({ name, result, detail }) =>
            html`<li>
              <span
                >${name.replaceAll('_', ' ')}
                <span class="line hint">${shortAddresses(visibleText(detail))}</span></span
              >${badge(result.kind, result.kind === 'passed' ? 'good' : 'bad')}
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}

/** By their ends, as everywhere on the pages. */
function shortAddresses(text: string): string {
  return text.replaceAll(/(0x[0-9a-f]{6})[0-9a-f]{28}([0-9a-f]{6})/gi, '$1…$2');
}
