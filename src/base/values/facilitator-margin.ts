/** Facilitators refuse to verify or settle an authorization that expires within this time. */
export const facilitatorMarginSecs = 6;
