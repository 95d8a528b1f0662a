//! Numbers as people read them.

/// `0.8 s`, `42 s`, `3 m 05 s`, `2 h 11 m`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.0995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..=59 => format!("{whole} s"),
        60..=3599 => format!("{} m {:02} s", whole / 60, whole % 60),
        3600..=86399 => format!("{} h {:02} m", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// `512 B`, `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit < UNITS.len() - 1 {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// `1 node`, `3 nodes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A moment as UTC, `2026-05-01 12:30:05`.
pub fn moment(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, second) = (seconds / 86400, seconds % 86400);
    // Days since 1970 to a date: counting from 1 March makes leap days fall at the end of a year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second % 3600 / 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_read_well() {
        assert_eq!(duration(0.0042), "4 ms");
        assert_eq!(duration(0.1), "0.1 s");
        assert_eq!(duration(59.0), "59 s");
        assert_eq!(duration(185.0), "3 m 05 s");
        assert_eq!(duration(7860.0), "2 h 11 m");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(moment(1_779_000_000_000), "2026-05-17 06:40:00 UTC");
    }
}
