import { html, type Html } from '../../base/values/html.ts';
import { type JobId, jobKey } from '../../base/values/job.ts';
import { withoutMarks } from '../../base/values/visible-text.ts';
import { ageText } from '../../base/values/age-text.ts';
import { field, selectField } from '../pages/elements.ts';
import type { ConsoleSite } from './visit.ts';

/** `454 ms`, `2.3 s`, `41 s`, then minutes, hours and days. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${Number((ms / 1_000).toFixed(1))} s` : ageText(ms / 1_000);
}

/** For how long something lasts; when it began is shown on hover. */
export function lasting(since: Date): Html {
  const exact = since
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
  return html`<span title="since ${exact}"
    >${ageText(Math.max(0, Date.now() - since.getTime()) / 1_000)}</span
  >`;
}

/** A job by the name that the configuration gives it, with its number in small print; without one, by its number. */
export function jobName(site: Pick<ConsoleSite, 'jobs'>, job: JobId): Html {
  return jobNamed(site, jobKey(job));
}

/** The same, by a number such as `1/0`. */
export function jobNamed({ jobs }: Pick<ConsoleSite, 'jobs'>, key: string): Html {
  const name = jobs?.().catalog.get(key)?.name;
  return name === undefined ? html`job ${key}` : html`${withoutMarks(name)} <span class="hint">${key}</span>`;
}

/** More jobs are chosen by their number. */
const mostChoices = 200;

/** A field `job`, whose values are numbers such as `1/0`, shown by the names of the jobs. `any`: the first choice, which is none. */
export function jobField(
  { jobs }: Pick<ConsoleSite, 'jobs'>,
  { value, any }: { readonly value?: string | null | undefined; readonly any?: string },
): Html {
  const catalog = jobs?.().catalog ?? new Map<string, { readonly name: string | undefined }>();
  if (catalog.size > mostChoices) {
    const isOptional = any !== undefined;
    return field({
      label: 'Job, as 1/0',
      name: 'job',
      value,
      maxLength: 26,
      isOptional,
      autocomplete: 'off',
    });
  }
  // a job that is not on sale any more may be chosen already
  const keys = new Set([...(value ? [value] : []), ...catalog.keys()]);
  const texts = Object.fromEntries(
    [...keys].map((key) => {
      const name = catalog.get(key)?.name;
      return [key, name === undefined ? `job ${key}` : `${withoutMarks(name)} (${key})`];
    }),
  );
  return selectField({
    label: 'Job',
    name: 'job',
    values: [...keys],
    value,
    texts,
    ...(any !== undefined && { any }),
  });
}
