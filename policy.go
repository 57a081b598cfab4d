package ratelimit

import (
	"fmt"
	"math"
	"math/big"
	"time"
	"unique"
)

// An Algorithm names how a policy counts. The zero Algorithm is none.
type Algorithm uint8

// The algorithms. Unlimited and Blocked are the plans that have no limit and
// no access.
const (
	AlgorithmTokenBucket Algorithm = iota + 1
	AlgorithmLeakyBucket
	AlgorithmSlidingLog
	AlgorithmFixedCounter
	AlgorithmSlidingCounter
	AlgorithmUnlimited
	AlgorithmBlocked
)

var algorithmNames = [...]string{
	"", "token-bucket", "leaky-bucket", "sliding-log", "fixed-counter", "sliding-counter", "unlimited", "blocked",
}

// String returns the algorithm's name as it stands in a policy's text.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) && a != 0 {
		return algorithmNames[a]
	}
	return "none"
}

// A Policy describes a limit as data. It is comparable, immutable and one word
// long. The zero Policy is invalid. A policy is checked when it is used, or by
// Validate; making one never fails.
type Policy struct{ handle unique.Handle[spec] }

// spec is what a policy says. Fields that its algorithm does not have are zero.
type spec struct {
	algorithm      Algorithm
	rate           Rate
	limit          int
	window         time.Duration
	cells          int
	initial        int
	hasInitial     bool
	intervalRefill bool
	immediateFirst bool
	misfit         string // a variant that the algorithm does not have
}

func (s spec) policy() Policy { return Policy{unique.Make(s)} }

func (p Policy) spec() spec {
	if p == (Policy{}) {
		return spec{}
	}
	return p.handle.Value()
}

// TokenBucketPolicy admits bursts of up to burst units, then rate.
// See TokenBucket.
func TokenBucketPolicy(rate Rate, burst int) Policy {
	return spec{algorithm: AlgorithmTokenBucket, rate: rate, limit: burst}.policy()
}

// LeakyBucketPolicy lets at most capacity units wait and lets them leave
// evenly at rate. See LeakyBucket.
func LeakyBucketPolicy(rate Rate, capacity int) Policy {
	return spec{algorithm: AlgorithmLeakyBucket, rate: rate, limit: capacity}.policy()
}

// SlidingLogPolicy admits exactly limit units in any window. See SlidingLog.
func SlidingLogPolicy(limit int, window time.Duration) Policy {
	return spec{algorithm: AlgorithmSlidingLog, limit: limit, window: window}.policy()
}

// FixedCounterPolicy admits limit units in each window aligned to the Unix
// epoch. See FixedCounter.
func FixedCounterPolicy(limit int, window time.Duration) Policy {
	return spec{algorithm: AlgorithmFixedCounter, limit: limit, window: window}.policy()
}

// SlidingCounterPolicy admits about limit units in any window, by an estimate
// from one cell. See SlidingCounter and WithCells.
func SlidingCounterPolicy(limit int, window time.Duration) Policy {
	return spec{algorithm: AlgorithmSlidingCounter, limit: limit, window: window, cells: 1}.policy()
}

// Unlimited is the policy of a plan that has no limit: every n ≥ 0 passes.
// Its Limit and every Remaining are math.MaxInt.
func Unlimited() Policy { return spec{algorithm: AlgorithmUnlimited, limit: math.MaxInt}.policy() }

// Blocked is the policy of a plan that has no access: everything is refused,
// n = 0 included, and RetryAfter is Never.
func Blocked() Policy { return spec{algorithm: AlgorithmBlocked}.policy() }

// WithCells divides the window of a sliding counter into c cells instead of 1.
// More cells estimate more closely and remember c+1 counts.
func (p Policy) WithCells(c int) Policy {
	return p.with(AlgorithmSlidingCounter, "cells", func(s *spec) { s.cells = c })
}

// WithInitial gives a token bucket n tokens at the limiter's construction
// instead of a full bucket. For a keyed limiter that is the construction of
// the keyed limiter, not the first sight of a key.
func (p Policy) WithInitial(n int) Policy {
	return p.with(AlgorithmTokenBucket, "initial", func(s *spec) { s.initial, s.hasInitial = n, true })
}

// WithIntervalRefill makes a token bucket add the whole n of Per(n, d) once
// every d, counted from the limiter's construction, instead of continuously.
// In any interval of length t it admits at most burst + n·(⌊t/d⌋ + 1).
func (p Policy) WithIntervalRefill() Policy {
	return p.with(AlgorithmTokenBucket, "refill", func(s *spec) { s.intervalRefill = true })
}

// WithImmediateFirst makes a leaky bucket release a unit at the start of its
// slot instead of at its end: the first unit of an idle bucket leaves at once.
func (p Policy) WithImmediateFirst() Policy {
	return p.with(AlgorithmLeakyBucket, "immediate-first", func(s *spec) { s.immediateFirst = true })
}

func (p Policy) with(of Algorithm, field string, set func(*spec)) Policy {
	s := p.spec()
	if s.algorithm == of {
		set(&s)
	} else if s.misfit == "" {
		s.misfit = field
	}
	return s.policy()
}

// Algorithm returns the policy's algorithm; that of the zero Policy is 0.
func (p Policy) Algorithm() Algorithm { return p.spec().algorithm }

// Limit returns the burst, capacity or limit: the largest n that can pass.
func (p Policy) Limit() int { return p.spec().limit }

// Rate returns the rate of a bucket, and the zero Rate of the others.
func (p Policy) Rate() Rate { return p.spec().rate }

// Window returns the window of a log or counter, and 0 of the others.
func (p Policy) Window() time.Duration { return p.spec().window }

// Cells returns the cells of a sliding counter, and 0 of the others.
func (p Policy) Cells() int { return p.spec().cells }

// Initial returns the tokens of a token bucket at construction: Limit unless
// WithInitial says otherwise. It returns 0 for the others.
func (p Policy) Initial() int {
	s := p.spec()
	if s.algorithm == AlgorithmTokenBucket && !s.hasInitial {
		return s.limit
	}
	return s.initial
}

// IntervalRefill reports whether WithIntervalRefill applies.
func (p Policy) IntervalRefill() bool { return p.spec().intervalRefill }

// ImmediateFirst reports whether WithImmediateFirst applies.
func (p Policy) ImmediateFirst() bool { return p.spec().immediateFirst }

// maxCells bounds the memory of one key of a sliding counter to some 8 KB.
const maxCells = 1024

// Validate returns nil for a policy that a limiter can enforce. Otherwise the
// error wraps ErrInvalidPolicy and names the field, its value and what is
// allowed.
func (p Policy) Validate() error {
	s := p.spec()
	if s.misfit != "" {
		return invalid(s.misfit, "set", "not a variant of "+s.algorithm.String())
	}
	switch s.algorithm {
	case AlgorithmTokenBucket:
		return s.validateBucket("burst")
	case AlgorithmLeakyBucket:
		return s.validateBucket("capacity")
	case AlgorithmSlidingLog, AlgorithmFixedCounter, AlgorithmSlidingCounter:
		return s.validateWindow()
	case AlgorithmUnlimited, AlgorithmBlocked:
		return nil
	}
	return invalid("algorithm", s.algorithm, "must be set: the zero Policy limits nothing")
}

func (s spec) validateBucket(size string) error {
	rate, why := s.rate.exact()
	if why != "" {
		return invalid("rate", s.rate, why)
	}
	if s.limit < 1 {
		return invalid(size, s.limit, "must be at least 1")
	}
	// limit / rate ≤ century
	if fill := new(big.Rat).SetInt64(int64(s.limit)); fill.Quo(fill, rate).Cmp(new(big.Rat).SetInt64(int64(century))) > 0 {
		return invalid(size, s.limit, "must fill within 100 years at "+s.rate.String())
	}
	if s.hasInitial && (s.initial < 0 || s.initial > s.limit) {
		return invalid("initial", s.initial, fmt.Sprintf("must be from 0 to the burst of %d", s.limit))
	}
	if n := s.rate.units(); s.intervalRefill && (n != math.Trunc(n) || n > 1<<53) {
		return invalid("rate", s.rate, "must be a whole number of units for an interval refill")
	}
	return nil
}

func (s spec) validateWindow() error {
	if s.limit < 1 {
		return invalid("limit", s.limit, "must be at least 1")
	}
	if s.window < 1 || s.window > century {
		return invalid("window", s.window, "must be from 1ns to 100 years")
	}
	if s.algorithm == AlgorithmSlidingCounter && (s.cells < 1 || s.cells > maxCells || time.Duration(s.cells) > s.window) {
		return invalid("cells", s.cells, fmt.Sprintf("must be from 1 to %d, each at least 1ns", maxCells))
	}
	return nil
}

func invalid(field string, value any, allowed string) error {
	return fmt.Errorf("%w: %s = %v: %s", ErrInvalidPolicy, field, value, allowed)
}
