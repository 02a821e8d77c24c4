//! A booted application's code is warm before the first request, and only code that every request runs has been
//! executed for that.

use super::project::{KERNEL, LARAVEL, OF_LARAVEL, Project, need_symfony};
use std::path::Path;

const NO_WARM_UP: &str = "warmup = []\nwarmup_auto = false\n";
/// Its error page has been rendered, and this many of its controllers have run.
const WARM: &str = "[true,0]";

fn is_warm(project: &Project) {
    let served = project.serve(&["--mode", "classic"]);
    assert_eq!(served.get("/loaded"), (200, "[false,0]".to_owned()), "{}", served.log());
    let nowhere = served.get("/nowhere");
    served.finish();
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    for _ in 0..3 {
        assert_eq!(served.get("/loaded"), (200, WARM.to_owned()), "{}", served.log());
        assert_eq!(served.get("/nowhere"), nowhere);
    }
    served.finish();
}

#[test]
fn a_symfony_application_is_warm_before_its_first_request_and_no_controller_has_run() {
    need_symfony!();
    let project = Project::symfony();
    project.write("howdah.toml", &format!("app = \"symfony\"\nmode = \"snapshot\"\n{NO_WARM_UP}"));
    let kernel = KERNEL.replace("foreach ([", "foreach (['/loaded' => 'loaded', ").replace(
        "    public function mode()",
        "    public function loaded(): Response
         {
             $page = class_exists('Symfony\\Component\\ErrorHandler\\Exception\\FlattenException', false);
             return new Response(json_encode([$page, self::$requests]));
         }
         public function mode()",
    );
    project.write("src/Kernel.php", &kernel);
    is_warm(&project);
    assert_eq!(project.read("var/terminated").lines().filter(|line| *line == "/").count(), 0);
}

#[test]
fn a_laravel_application_is_warm_before_its_first_request_and_no_controller_has_run() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let project = Project::of(OF_LARAVEL);
    project.write("howdah.toml", &format!("app = \"laravel\"\nmode = \"snapshot\"\n{NO_WARM_UP}"));
    let route = "Route::get('/loaded', fn () => json_encode([app()->resolved('validator'), Counter::$all]));";
    project.write("routes/web.php", &(project.read("routes/web.php") + route));
    is_warm(&project);
}
