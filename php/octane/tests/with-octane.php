<?php

// The commands, the worker script and the client with Octane itself, in a served project (support/Project.php). Skipped if
// that is missing.

declare(strict_types=1);

require __DIR__ . '/support/Project.php';

$project = Project::ofEnvironment();
if ($project === null) {
    exit(0);
}
$project->addRoutes("Route::get('/version', fn () => 'one');\n"
    . "Route::get('/own', fn () => [env('OWN'), \$_SERVER['OWN'] ?? null, config('app.name'), url('/a')]);\n"
    . "Route::get('/printed', function () { echo 'printed '; return 'returned'; });\n"
    // Each on its own line, which distinguishes closures when they are serialized.
    . "Route::get('/together', fn () => Laravel\\Octane\\Facades\\Octane::concurrently([\n    fn () => 1 + 1,\n    fn () => 'two',\n]));\n");
[$status, $said] = $project->artisan('octane:status');
$project->check([$status, str_contains($said, 'not running')], [1, true], "no server: $said");
$project->check($project->artisan('octane:start', '--mode=async')[0], 1, 'a mode that it cannot run in');
[$status, $said] = $project->artisan('octane:start', '--server=nginx');
$project->check([$status, str_contains($said, 'Invalid server')], [1, true], "another server: $said");

foreach (['worker', 'snapshot'] as $mode) {
    $project->start("--mode=$mode", '--workers=1', '--watch');
    $note = json_decode($project->read('storage/logs/octane-server-state.json'), true);
    $project->check([$note['masterProcessId'], $note['state']['mode']], [$project->process(), $mode], 'the note');
    $project->check(str_contains($project->read('storage/logs/server.log'), "Local: http://127.0.0.1:$project->port"), true, 'the address');

    $project->check($project->get('/mode')[1], "$mode 1", 'the mode');
    $first = json_decode($project->get('/items/7?x=1')[1], true);
    $second = json_decode($project->get('/items/8')[1], true);
    // A static survives in worker mode; a singleton of a request never does.
    $project->check([$first['own'], $second['own'], $second['all'] - $first['all']], [1, 1, $mode === 'worker' ? 1 : 0], 'state');
    $project->check($first['url'], "http://127.0.0.1:$project->port/items/7?x=1", 'the address of a request');
    $own = ['setting', 'setting', 'From the environment', "http://127.0.0.1:$project->port/a"];
    $project->check(json_decode($project->get('/own')[1]), $own, 'settings, not those that a request left');
    $project->check(json_decode($project->get('/index.php/items/9')[1], true)['id'] ?? null, 9, 'behind /index.php');
    $project->check($project->get('/printed')[1], 'printed returned', 'what was printed');
    $project->check(json_decode($project->get('/together')[1]), [2, 'two'], 'concurrently()');
    $project->check([$project->get('/nowhere')[0], $project->get('/broken')[0], $project->get('/rows')[0]], [404, 500, 200], 'errors');
    $project->check($project->get('/form', form: ['a' => 'b'])[0], 419, 'a form without a token');
    $tokens = array_map(static fn () => $project->get('/form')[1], [1, 2, 3]);
    $project->check(count(array_unique($tokens)), 3, 'a token for each visitor');
    foreach ([1, 2] as $visitor) {
        $cookie = '';
        foreach ([1, 2, 3] as $visit) {
            [, $text, $set] = $project->get('/visits', $cookie);
            $cookie = $set ?? $cookie;
            $project->check($text, "visits: $visit", "visitor $visitor");
        }
    }
    @unlink("$project->top/storage/terminated");
    $project->get('/terminates');
    $project->until(static fn () => $project->read('storage/terminated') === "x\n", 'terminate() has not run');

    [$status, $said] = $project->artisan('octane:status');
    $project->check([$status, str_contains($said, 'Octane server is running') && str_contains($said, $mode)], [0, true], $said);
    [$status, $said] = $project->artisan('octane:start', "--port=$project->port");
    $project->check([$status, str_contains($said, 'already running')], [1, true], "a second one: $said");
    $project->check($project->artisan('octane:reload')[0], 0, 'a reload');
    $project->check($project->get('/version')[1], 'one', 'before a change');
    $routes = $project->read('routes/web.php');
    $project->write('routes/web.php', str_replace("'one'", "'two'", $routes));
    $project->until(static fn () => $project->get('/version')[1] === 'two', 'a changed file does not count');
    $project->write('routes/web.php', $routes);
    $project->until(static fn () => $project->get('/version')[1] === 'one', 'a file that was changed back does not count');

    $project->check($project->artisan('octane:stop')[0], 0, 'a stop');
    $project->check($project->ended(), 0, 'the exit status');
    $project->check($project->read('storage/logs/octane-server-state.json'), '', 'the note is gone');
}
