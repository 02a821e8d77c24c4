//! A visit to each application: its first pages, their resources, a login if there is one, an unknown address.

use super::compare::ServerPair;
use crate::browser::{encode, form};
use howdah_tests::Request;

/// Posts the form of the last page.
fn post(both: &mut ServerPair<'_>, name: &str, status: u16, target: &str, marker: &str, changes: &[(&str, &str)]) {
    if both.shows(marker) {
        both.step(name, status, |page| Request::form(target, &encode(&form(page, marker, changes))));
    }
}

pub(crate) fn mediawiki(both: &mut ServerPair<'_>) {
    both.get(301, "/mediawiki");
    both.get(301, "/mediawiki/");
    both.get(200, "/mediawiki/index.php/Main_Page");
    both.assets("/mediawiki/", 12);
    both.get(404, "/mediawiki/index.php/No_such_page");
    both.get(200, "/mediawiki/index.php?title=Special:Version");
    both.get(200, "/mediawiki/index.php?title=Special:Search&search=Main");
    both.get(200, "/mediawiki/index.php?title=Main_Page&action=history");
    both.get(200, "/mediawiki/api.php?action=query&meta=siteinfo&format=json");
    both.get(200, "/mediawiki/rest.php/v1/page/Main_Page/bare");
    both.get(404, "/mediawiki/rest.php/v1/page/Nothing");
    both.get(404, "/mediawiki/no/such/file.css");
    both.get(200, "/mediawiki/index.php?title=Special:UserLogin");
    let fields = [("wpName", "Ada"), ("wpPassword", "a long secret"), ("wploginattempt", "Log in")];
    post(both, "the login", 302, "/mediawiki/index.php?title=Special:UserLogin", "userlogin", &fields);
    both.get(200, "/mediawiki/index.php?title=Main_Page&action=edit");
    let _ = both.shows("pt-logout");
    both.get(200, "/mediawiki/index.php?title=Special:Preferences");
}

pub(crate) fn phpmyadmin(both: &mut ServerPair<'_>) {
    both.get(301, "/phpmyadmin");
    // Templates are compiled at their first use into a cache that both servers share. On PHP 8.4 the page then shows
    // Twig's deprecation messages about them.
    both.visited("/phpmyadmin/");
    both.get(200, "/phpmyadmin/");
    both.assets("/phpmyadmin/", 30);
    let fields = [("pma_username", "app"), ("pma_password", "secret")];
    post(both, "the login", 302, "/phpmyadmin/index.php?route=/", "login_form", &fields);
    let pages = [
        ("/database/structure&db=shop", "goods"),
        ("/sql&db=shop&table=goods&pos=0", "bridle &amp; bit"),
        ("/server/databases", "shop"),
    ];
    for (route, shown) in pages {
        let page = format!("/phpmyadmin/index.php?route={route}");
        both.visited(&page);
        both.get(200, &page);
        let _ = both.shows(shown);
    }
    both.get(404, "/phpmyadmin/no/such.css");
    both.get(200, "/phpmyadmin/doc/html/index.html");
}

pub(crate) fn roundcube(both: &mut ServerPair<'_>) {
    both.get(301, "/roundcube");
    both.get(200, "/roundcube/");
    both.assets("/roundcube/", 20);
    both.get(200, "/roundcube/?_task=login");
    let fields = [("_user", "ada"), ("_pass", "wrong")];
    post(both, "a login without a mail server", 401, "/roundcube/?_task=login", "login-form", &fields);
    both.get(404, "/roundcube/program/js/no-such.js");
    both.get(200, "/roundcube/favicon.ico");
}

pub(crate) fn cacti(both: &mut ServerPair<'_>) {
    both.get(200, "/cacti/");
    both.assets("/cacti/", 30);
    post(
        both,
        "the login",
        302,
        "/cacti/index.php",
        "login_username",
        &[("login_username", "admin"), ("login_password", "secret")],
    );
    for page in ["graph_view.php", "host.php", "settings.php", "data_sources.php", "user_admin.php", "about.php"] {
        both.get(200, &format!("/cacti/{page}"));
    }
    both.get(404, "/cacti/no-such.css");
}

pub(crate) fn icingaweb2(both: &mut ServerPair<'_>) {
    both.get(302, "/icingaweb2/");
    both.get(302, "/icingaweb2/authentication/login");
    both.get(200, "/icingaweb2/setup");
    both.assets("/icingaweb2/", 10);
    both.get(404, "/icingaweb2/nothing/of/this");
}

pub(crate) fn adminer(both: &mut ServerPair<'_>) {
    both.get(301, "/adminer");
    both.get(200, "/adminer/");
    both.get(200, "/adminer/conf.php");
}

pub(crate) fn phpldapadmin(both: &mut ServerPair<'_>) {
    both.get(200, "/phpldapadmin/");
    both.get(200, "/phpldapadmin/index.php");
}

pub(crate) fn postfixadmin(both: &mut ServerPair<'_>) {
    both.get(404, "/postfixadmin/nothing.css");
}

pub(crate) fn simplesamlphp(both: &mut ServerPair<'_>) {
    both.get(301, "/simplesamlphp");
    both.get(302, "/simplesamlphp/");
    both.get(200, "/simplesamlphp/module.php/core/frontpage_welcome.php");
    both.assets("/simplesamlphp/", 10);
    // Its page for unknown paths needs a cookie, which as packaged requires HTTPS.
    both.get(500, "/simplesamlphp/module.php");
    both.get(500, "/simplesamlphp/module.php/no/such");
}

pub(crate) fn phpsysinfo(both: &mut ServerPair<'_>) {
    both.get(301, "/phpsysinfo");
    both.get(200, "/phpsysinfo/index.php?disp=bootstrap");
    both.assets("/phpsysinfo/", 20);
    both.get(200, "/phpsysinfo/js.php?name=jquery");
}

pub(crate) fn dokuwiki(both: &mut ServerPair<'_>) {
    both.get(200, "/dokuwiki/doku.php");
    both.assets("/dokuwiki/", 10);
    both.get(200, "/dokuwiki/doku.php?id=wiki:syntax");
    both.get(200, "/dokuwiki/doku.php?do=login");
}
