<?php
// Pages that read the request by all means, and pages that leave state behind.

use App\Counter;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Route;
use Illuminate\Support\Facades\Validator;

app()->singleton(Counter::class);
// As for the exception page of Laravel 11 and later: the executed queries.
const LISTENER = 'Illuminate\Foundation\Exceptions\Renderer\Listener';
app()->singleton(LISTENER, fn () => new class {
    protected $queries = [];

    public function count(): int
    {
        $this->queries[] = 'select 1';

        return \count($this->queries);
    }
});
Route::get('/', function () {
    app(LISTENER)->count();
    date_default_timezone_set('Asia/Tokyo');

    return view('page', ['rows' => ['a & b', app()->getLocale()]]);
});
Route::get('/queries', fn () => 'queries: ' . app(LISTENER)->count());
Route::get('/zone', fn () => date_default_timezone_get());
Route::get('/started', fn () => LARAVEL_START < $_SERVER['REQUEST_TIME_FLOAT'] ? 'before this request' : 'with this request');
Route::get('/items/{id}', function (Request $request, int $id) {
    app()->setLocale('de');
    config(['app.name' => "left by $id"]);
    return response()->json(['id' => $id, 'own' => ++app(Counter::class)->own, 'all' => ++Counter::$all, 'url' => $request->fullUrl(), 'ajax' => $request->ajax()]);
})->whereNumber('id');
Route::get('/visits', fn (Request $request) => 'visits: ' . tap($request->session()->get('visits', 0) + 1, fn ($n) => $request->session()->put('visits', $n)));
Route::get('/rows', fn () => DB::select('SELECT 1 + 1 AS two, ? AS given', ['x']));
Route::get('/check', fn (Request $request) => Validator::make($request->query(), ['mail' => 'required|email'])->errors()->all());
Route::get('/token', fn () => strlen(csrf_token()));
Route::post('/token', fn () => 'posted');
Route::get('/form', fn () => response('<form><input type="hidden" name="_token" value="' . csrf_token() . '"></form>' . (Auth::id() ?? 'guest')));
Route::post('/form', fn () => 'saved');
Route::post('/login', fn (Request $request) => Auth::attempt($request->only('email', 'password')) ? 'welcome' : 'unknown');
Route::get('/terminates', function () {
    app()->terminating(fn () => file_put_contents(storage_path('terminated'), "x\n", FILE_APPEND));
    return 'soon';
});
Route::get('/mode', fn () => Howdah\mode() . ' 1');
Route::get('/broken', fn () => throw new RuntimeException('broken on purpose'));
Route::get('/gate.php', fn () => 'ready');
