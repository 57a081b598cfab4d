// Package ratelimit decides, for each request, whether work may go ahead now
// (rate limiting) and when it may if not now (traffic shaping).
//
// A [Policy] describes a limit as data. It is enforced on one budget by [New],
// and on one budget for each key by [NewKeyed]. Five algorithms stand behind the
// one interface [Limiter]:
//
//   - [TokenBucket]: bursts of up to burst, then rate. The one to take when in
//     doubt. Not for work behind it that cannot take a burst.
//   - [LeakyBucket]: a short queue that leaves evenly at rate. Not for callers
//     that cannot wait; its meter, Allow, then does what a token bucket does.
//   - [SlidingLog]: exactly limit in any window, for 16 bytes of each moment at
//     which something was admitted. Not for large limits on many keys.
//   - [FixedCounter]: limit in each aligned window, for a moment and a count. Not
//     where twice the limit across the edge of two windows matters.
//   - [SlidingCounter]: about limit in any window, for the memory of a counter.
//     Not where the limit has to be exact.
//
// # Rules
//
// Refusals cost nothing, in any method. n units are charged all or not at all;
// n = 0 passes and charges nothing; a negative n and one above the limit never
// pass. RetryAfter is the least wait that is enough. Bookings are first come,
// first served. Limiting is in integer arithmetic on one clock reading for each
// decision, and does not drift. Moments are rounded up to a nanosecond, so that
// two booked moments can be closer by less than that. Nothing panics but [Must],
// and the zero value of every type refuses everything.
package ratelimit
