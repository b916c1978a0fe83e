/** The paths on sale and what their upstream answers, the same behind every server. */

/** A path each. `authorization`: the upstream answers before the payment is settled; the others are settled first. */
export const routeNames = ['authorization', 'upfront', 'stream'] as const;
export type RouteName = (typeof routeNames)[number];

export const pathOf = (route: RouteName): string => `/${route}`;

/** How long after the first event of a stream the others come. */
export const restAfterMs = 100;

/** About a kilobyte of JSON. */
const answerBody = JSON.stringify({
  city: 'Reykjavík',
  hours: Array.from({ length: 15 }, (_, hour) => ({
    at: `2026-11-29T${String(hour).padStart(2, '0')}:00:00Z`,
    celsius: hour - 4,
    wind: 12,
  })),
});
const events = Array.from({ length: 10 }, (_, at) => `data: {"event":${at},"text":"a tenth of it"}\n\n`);

export const firstEvent = events[0] ?? '';
export const laterEvents = events.slice(1).join('');

/** The whole body of an answer. */
export function bodyOf(route: RouteName): string {
  return route === 'stream' ? firstEvent + laterEvents : answerBody;
}
