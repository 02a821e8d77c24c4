//! Black-box scenarios, grouped by what they look at. One binary, so that linking happens once.

use howdah_tests::{Request, scenario};

scenario!(
    hello,
    |s| s.php("a.php", "echo 'hi ', $_GET['x'];"),
    |site| {
        assert_eq!(site.get_ok("/a.php?x=1"), "hi 1");
    },
);
