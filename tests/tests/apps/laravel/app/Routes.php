<?php
// Loads the routes with sessions, cookies and protection against forged forms.
namespace App;

use Illuminate\Support\Facades\Route;

final class Routes extends \Illuminate\Foundation\Support\Providers\RouteServiceProvider
{
    public function boot(): void
    {
        $this->routes(fn () => Route::middleware('web')->group(base_path('routes/web.php')));
    }
}
