//! Learned warm-up of a booted application: one path for each route, however many pages the route has, and no tokens.

use super::project::{KERNEL, LARAVEL, OF_LARAVEL, Project, need_symfony};
use howdah_tests::process::{PATIENCE, eventually};
use std::path::Path;

/// Visits many pages of one route, and many pages of another one whose paths contain tokens.
fn visit(project: &Project) {
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for n in 0..60_u8 {
        let letter = char::from(b'a' + n % 26);
        assert_eq!(served.get(&format!("/shop/000F_office_grey_{letter}jeans")).0, 200);
        assert_eq!(served.get(&format!("/gift/9f86d081884c7d659a2feaa0c55ad{n:02}")).0, 200);
    }
    served.wait_for_log("from traffic; starting new workers with it");
    served.wait_for_log("frequent paths that are not learned: /gift/*: a part of it looks like a token");
    served.wait_for_log("reload: new workers serve");
    let status = project.command(&["status"]);
    assert!(status.contains("warm-up: frequent paths that are not learned: /gift/*:"), "{status}");
    assert!(served.get("/shop/other").0 == 200 && served.get("/mode").1 == "snapshot 1");
    let log = served.finish();
    let learnt: Vec<_> = log.lines().filter(|line| line.contains("from traffic")).collect();
    assert_eq!(learnt.len(), 1, "{learnt:?}");
    assert_eq!(learnt[0].matches("/shop/000F_office_grey_").count(), 1, "{learnt:?}");
    let about: Vec<_> = log.lines().filter(|line| line.contains("warm-up: ")).collect();
    assert!(!about.iter().any(|line| line.contains("9f86d081")), "{about:?}");

    // The next start knows the route too.
    let served = project.serve(&[]);
    served.wait_for_log("before this start");
    served.wait_for_mode("snapshot");
    for n in 0..110_u8 {
        assert_eq!(served.get(&format!("/shop/{}", char::from(b'a' + n % 26))).0, 200);
    }
    served.wait_for_mode("snapshot");
    let log = served.finish();
    assert!(!log.contains("from traffic"), "nothing is new: {log}");
}

#[test]
fn a_symfony_application_is_warmed_up_with_one_path_for_each_route() {
    need_symfony!();
    let project = Project::symfony();
    let routes = "foreach (['/shop/{name}' => 'shop', '/gift/{name}' => 'gift', ";
    let kernel = KERNEL.replace("foreach ([", routes).replace(
        "    public function mode()",
        "    public function shop(): Response { return new Response('shop'); }
         public function gift(): Response { return new Response('gift'); }
         public function mode()",
    );
    project.write("src/Kernel.php", &kernel);
    visit(&project);
}

#[test]
fn a_laravel_application_is_warmed_up_with_one_path_for_each_route() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let project = Project::of(OF_LARAVEL);
    let routes = "Route::get('/shop/{name}', fn () => 'shop'); Route::get('/gift/{name}', fn () => 'gift');";
    project.write("routes/web.php", &(project.read("routes/web.php") + routes));
    visit(&project);
}

/// The page counts its visits in a static property, which worker mode keeps.
#[test]
fn pages_of_one_route_are_demoted_together() {
    need_symfony!();
    let project = Project::symfony();
    project.write("howdah.toml", "app = \"symfony\"\nmode = \"worker\"\ncompare_one_in = 1\n");
    let kernel = KERNEL.replace("foreach ([", "foreach (['/shop/{name}' => 'shop', ").replace(
        "    public function mode()",
        "    public function shop(): Response { return new Response('visit ' . ++self::$requests); }
         public function mode()",
    );
    project.write("src/Kernel.php", &kernel);
    let served = project.serve(&[]);
    served.wait_for_mode("worker");
    let mut pages = ('a'..='z').cycle();
    let demoted = || {
        served.get(&format!("/shop/{}", pages.next().unwrap()));
        served.log().contains("route=/shop/* reason=")
    };
    assert!(eventually(PATIENCE, demoted), "{}", served.log());
    assert_eq!(served.get("/shop/never-seen"), (200, "visit 1".to_owned()));
    assert!(project.command(&["routes"]).contains("/shop/*"));
    assert!(project.command(&["routes", "--restore", "/shop/any"]).contains("one route runs in its pool again"));
    served.wait_for_mode("worker");
    served.finish();
}
