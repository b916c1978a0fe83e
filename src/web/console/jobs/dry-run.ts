import { html, type Html } from '../../../base/values/html.ts';
import { parseJobId } from '../../../base/values/job.ts';
import { refusals } from '../../../base/errors/refusal.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { type DryRun, dryRun, refuseDryRunByHead } from '../../../jobs/use-cases/dry-run.ts';
import { openRequest } from '../../../jobs/use-cases/job-request.ts';
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
      return show(visit, verdictOf(run, jobNamed(visit.site, `${service}/${index}`)));
    },
  );
}

export function dryRunForm(visit: OperatorVisit): Html {
  const fields = html`${jobField(visit.site, {})}
    ${field({ label: 'Caller', name: 'caller', maxLength: 42, isOptional: true, autocomplete: 'off', hint: 'The address that a restricted job would be called by. It is asserted here, not proven.' })}
    <button>Try it</button>`;
  return html`<section class="sheet">
    <h2>Dry run</h2>
    <p>Whether a call would be authorized. Nothing is charged or called.</p>
    ${form(visit, path, fields)}
  </section>`;
}

function verdictOf({ verdict, mode, isEnabled, caller, checks }: DryRun, job: Html): Html {
  return html`<section class="sheet" role="status">
    <h2>Dry run of ${job}</h2>
    <p>
      ${verdict.kind === 'allowed' ? badge('allowed', 'good') : badge('refused', 'bad')}
      ${verdict.kind === 'refused' && refusals[verdict.code].sentence}
      ${verdict.kind === 'allowed' && !isEnabled && 'Once the job is enabled: it is not sold now.'}
      ${mode !== undefined && html`<span class="hint">${mode.replaceAll('_', ' ')}</span>`}
      ${caller !== undefined && html`<code>${caller}</code>`}
    </p>
    ${
      checks.length > 0 &&
      html`<ul class="rows">
        ${checks.map(
          ({ name, result, detail }) =>
            html`<li>
              <span>${name.replaceAll('_', ' ')} <span class="line hint">${visibleText(detail)}</span></span
              >${badge(result.kind, result.kind === 'passed' ? 'good' : 'bad')}
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}
