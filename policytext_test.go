package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

// What people write for a token bucket has a burst of max(1, ⌈n⌉).
func TestParsePolicyHumanForms(t *testing.T) {
	for text, want := range map[string]ratelimit.Policy{
		"10/s":       casePerSecond(10, 10),
		"0.5/s":      casePerSecond(0.5, 1),
		"1.5/s":      casePerSecond(1.5, 2),
		"100/m":      ratelimit.TokenBucketPolicy(ratelimit.PerMinute(100), 100),
		"5000/h":     ratelimit.TokenBucketPolicy(ratelimit.PerHour(5000), 5000),
		"500/10s":    ratelimit.TokenBucketPolicy(ratelimit.Per(500, 10*time.Second), 500),
		"1e3/s":      casePerSecond(1000, 1000),
		"3/1h30m":    ratelimit.TokenBucketPolicy(ratelimit.Per(3, 90*time.Minute), 3),
		"7/ms":       ratelimit.TokenBucketPolicy(ratelimit.Per(7, time.Millisecond), 7),
		"  10/s\t\n": casePerSecond(10, 10),
	} {
		got, err := ratelimit.ParsePolicy(text)
		if got != want || err != nil {
			t.Fatalf("ParsePolicy(%q) = %v, %v; want %v", text, got, err, want)
		}
		if again, err := ratelimit.ParsePolicy(got.String()); again != want || err != nil {
			t.Errorf("ParsePolicy(%q) = %v, %v; want %v", got.String(), again, err, want)
		}
	}
}

// Each error names the offending word and its column.
func TestParsePolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "empty",
		" \t\n":                            "empty",
		"tokenbucket rate=1/s burst=1":     `word "tokenbucket" at column 1`,
		"none":                             `word "none" at column 1`,
		"Token-Bucket rate=1/s burst=1":    `word "Token-Bucket" at column 1`,
		"token-bucket":                     `word "token-bucket" at column 1: needs rate and burst`,
		"  token-bucket burst=1":           `word "token-bucket" at column 3: needs rate and burst; rate is missing`,
		"token-bucket rate=1/s":            "burst is missing",
		"leaky-bucket rate=1/s":            "capacity is missing",
		"sliding-log limit=1":              "window is missing",
		"token-bucket rate=1/s capacity=1": `word "capacity=1" at column 23: not a field of token-bucket`,
		"leaky-bucket rate=1/s burst=1":    `word "burst=1" at column 23: not a field of leaky-bucket`,
		"fixed-counter limit=1 window=1s cells=2":          `word "cells=2" at column 33: not a field of fixed-counter`,
		"unlimited limit=3":                                `word "limit=3" at column 11: not a field of unlimited`,
		"blocked x":                                        `word "x" at column 9`,
		"token-bucket rate=1/s  burst":                     `word "burst" at column 24: want name=value`,
		"token-bucket rate=1/s burst=":                     `word "burst=" at column 23: not a whole number`,
		"token-bucket rate=1/s burst=1.5":                  `word "burst=1.5" at column 23: not a whole number`,
		"token-bucket rate=1/s burst=9e9":                  `word "burst=9e9" at column 23: not a whole number`,
		"token-bucket rate=1/s burst=99999999999999999999": `at column 23`,
		"token-bucket rate=1/s burst=1 burst=2":            `word "burst=2" at column 31: given twice`,
		"token-bucket rate=1/s rate=1/s":                   `word "rate=1/s" at column 23: given twice`,
		"token-bucket rate=x/s burst=1":                    `word "rate=x/s" at column 14`,
		"token-bucket rate=1 burst=1":                      `word "rate=1" at column 14`,
		"token-bucket rate=1/x burst=1":                    `word "rate=1/x" at column 14`,
		"token-bucket rate=1/s burst=1 refill=all":         `word "refill=all" at column 31: want interval`,
		"leaky-bucket rate=1/s capacity=1 release=":        `word "release=" at column 34: want immediate-first`,
		"sliding-log limit=1 window=1":                     `word "window=1" at column 21: not a duration`,
		"sliding-log limit=1 window=1day":                  `word "window=1day" at column 21: not a duration`,
		"sliding-counter limit=1 window=1s cells=":         `word "cells=" at column 35: not a whole number`,
		"10/s burst=5":                                     `word "burst=5" at column 6`,
		"x/s":                                              `word "x/s" at column 1`,
		"NaN/s":                                            `word "NaN/s" at column 1`,
		"Inf/s":                                            `word "Inf/s" at column 1`,
		"0x10/s":                                           `word "0x10/s" at column 1`,
		"1_000/s":                                          `word "1_000/s" at column 1`,
		"1e999/s":                                          `word "1e999/s" at column 1`,
		"/s":                                               `word "/s" at column 1`,
		"10/":                                              `word "10/" at column 1`,
		"10/-1s":                                           `word "10/-1s" at column 1`,
		"10/0s":                                            `word "10/0s" at column 1`,
		"-1/s":                                             `word "-1/s" at column 1`,
		"0/s":                                              `word "0/s" at column 1`,
		"3e9/s":                                            `word "3e9/s" at column 1`,
		"1/d":                                              `word "1/d" at column 1`,
		"token-bucket rate=0/s burst=1":                    "rate = 0/1s",
		"token-bucket rate=1/s burst=0":                    "burst = 0",
		"token-bucket rate=1/s burst=1 initial=2":      "initial = 2",
		"sliding-counter limit=1 window=1s cells=9999": "cells = 9999",
	} {
		p, err := ratelimit.ParsePolicy(text)
		policyError(t, text, err, want)
		if p != (ratelimit.Policy{}) {
			t.Errorf("ParsePolicy(%q) = %v with an error, want the zero Policy", text, p)
		}
	}
}

func TestParsePolicyTooLong(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("a", 1<<20),
		"10/s" + strings.Repeat(" ", 300),
		strings.Repeat("9", 300) + "/s",
		"token-bucket rate=1/s burst=" + strings.Repeat("0", 300) + "1",
	} {
		_, err := ratelimit.ParsePolicy(text)
		policyError(t, text[:10], err, "at most 256")
		if len(err.Error()) > 200 {
			t.Errorf("the error of %q… has %d bytes, want it short", text[:10], len(err.Error()))
		}
	}
}
