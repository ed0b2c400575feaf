// Those who hold places and say nothing, clocks that are wrong, two with one name.
import './suites/slow-loris.ts'
import './suites/clock.ts'
import './suites/duplicates.ts'
