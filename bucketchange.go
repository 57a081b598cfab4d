package ratelimit

import "github.com/seed4f92381c/ratelimit/internal/arith"

// renew moves the origin to now, or a little before, so that words stay small
// however long the limiter runs.
func (b *bucket) renew(now int64) *bucket {
	next := *b
	next.origin = now
	if den := int64(b.den); now-b.origin >= den {
		// At a whole multiple what was minted is a whole number, and a step ends.
		next.origin -= (now - b.origin) % den
	}
	next.initial = next.moved(b.initial, b.origin)
	next.horizon = next.lasts()
	return &next
}

func (b *bucket) ends() int64 { return b.horizon }

// become starts the new bucket at now, with what a bucket never used has: full
// ones keep their tokens, and are filled up to a larger size at the new rate.
func (b *bucket) become(p Policy, now int64) *bucket {
	next := newBucket(p)
	next.origin = now
	if next.stepped {
		next.origin -= now % int64(next.den)
	}
	next.initial = 0
	next.initial = b.carry(0, now, next)
	next.horizon = next.lasts()
	return next
}

// carry keeps the tokens of a token bucket, capped at the new size and rounded
// down, and a debt as the time until it is paid, so that bookings keep their
// moments. The water of a leaky bucket stays, rounded up.
func (b *bucket) carry(s bucketState, now int64, to *bucket) bucketState {
	if b.plan == to.plan {
		return to.moved(s, b.origin)
	}
	base, free := b.base(s, now)
	level, start := base-b.minted(now), to.mintedUp(now)
	switch {
	case b.release != whenMinted:
		return bucketState(arith.Add(start, arith.MulDivUp(level, to.cost, b.cost)))
	case level > b.size:
		paid := b.when(base - b.size)
		return bucketState(min(arith.Add(to.mintedUp(paid), to.size), mostSpent))
	}
	kept := min(arith.MulDiv(free, to.cost, b.cost), to.size)
	return bucketState(start + to.size - kept)
}

// moved returns the word s of an earlier origin relative to b's. Where den is
// 1 or the bucket is stepped that is exact; else it rounds up, by less than a
// nanosecond's refill.
func (b *bucket) moved(s bucketState, origin int64) bucketState {
	if origin == b.origin {
		return s
	}
	earlier := *b
	earlier.origin = origin
	return bucketState(arith.Sub(uint64(s), earlier.minted(b.origin)))
}
