use super::*;

/// The native bucket of a duration as it is defined, by its logarithm.
fn native_by_logarithm(us: u64) -> usize {
    let index = ((us as f64 / 1e6).log2() * PARTS.len() as f64).ceil();
    (index.max(f64::from(NATIVE_START)) as i32 - NATIVE_START).min(NATIVE as i32 - 1) as usize
}

fn native_of(us: u64) -> usize {
    let cell = cell_of(us);
    native_cells().position(|cells| cells.contains(&cell)).unwrap()
}

#[test]
fn the_parts_of_a_doubling_are_equal() {
    for pair in PARTS.windows(2) {
        assert!((pair[1] / pair[0] - PARTS[1]).abs() < 1e-15, "{pair:?}");
    }
    assert!((PARTS[1].powi(8) - 2.0).abs() < 1e-14);
}

#[test]
fn bounds_of_both_kinds_are_rounded_down_and_grow() {
    for (at, &bound) in NATIVE_US.iter().enumerate() {
        let exact = 2_f64.powf(f64::from(NATIVE_START + at as i32) / 8.0) * 1e6;
        assert!(bound as f64 <= exact && exact < (bound + 1) as f64, "{at}: {bound}, {exact}");
    }
    assert_eq!((NATIVE_US[0], NATIVE_US[16 * 8], NATIVE_US[NATIVE - 2]), (15, 1_000_000, 4_096_000_000));
    assert!(UPPER_US.windows(2).all(|pair| pair[0] < pair[1]), "{UPPER_US:?}");
    assert!(BOUNDS_US.iter().all(|bound| UPPER_US.contains(bound)));
    assert!(NATIVE_US.iter().all(|bound| UPPER_US.contains(bound)));
}

#[test]
fn a_bound_belongs_to_the_bucket_that_it_ends() {
    for (at, &bound) in NATIVE_US.iter().enumerate() {
        assert_eq!((native_of(bound), native_of(bound + 1)), (at, at + 1), "{bound}");
    }
    for (at, &bound) in BOUNDS_US.iter().enumerate() {
        assert_eq!((classic_of(bound), classic_of(bound + 1)), (at, at + 1), "{bound}");
        assert_eq!(cell_of(bound + 1), cell_of(bound) + 1);
    }
}

#[test]
fn durations_fall_where_their_logarithm_says() {
    // Whole numbers around every power of two, and many between.
    let around = (0..64).flat_map(|digits| (0..200).map(move |step| (1_u64 << digits) + step * ((1 << digits) / 200)));
    for us in (0..20_000).chain(around).chain((0..10_000).map(|n| n * 977_777)) {
        assert_eq!(native_of(us), native_by_logarithm(us), "{us}");
        let cell = cell_of(us);
        assert_eq!(classic_cells().position(|cells| cells.contains(&cell)), Some(classic_of(us)), "{us}");
    }
}

#[test]
fn nothing_and_everything_have_a_cell() {
    assert_eq!((cell_of(0), cell_of(15), cell_of(16)), (0, 0, 1));
    assert_eq!((cell_of(4_096_000_000), cell_of(4_096_000_001)), (CELLS - 2, CELLS - 1));
    assert_eq!((cell_of(1 << 63), cell_of(u64::MAX)), (CELLS - 1, CELLS - 1));
}

#[test]
fn the_cells_are_divided_among_the_buckets_of_each_kind() {
    for (count, ranges) in
        [(NATIVE, native_cells().collect::<Vec<_>>()), (BOUNDS_US.len() + 1, classic_cells().collect::<Vec<_>>())]
    {
        assert_eq!(ranges.len(), count);
        assert_eq!((ranges[0].start, ranges[count - 1].end), (0, CELLS));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start) && ranges.iter().all(|r| !r.is_empty()));
    }
    // Size of a histogram: see `histogram::Buckets`.
    assert!(CELLS * size_of::<u64>() <= 2048, "{CELLS}");
}
