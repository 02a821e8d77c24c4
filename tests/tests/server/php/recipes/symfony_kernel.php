<?php

namespace App;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public static int $requests = 0;
    public array $visitors = [];

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => '%env(APP_SECRET)%', 'http_method_override' => false, 'session' => [
            'storage_factory_id' => 'session.storage.factory.native', 'save_path' => '%kernel.project_dir%/var/sessions', 'handler_id' => null]]);
        $container->parameters()->set('greeting', '%env(GREETING)%');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        foreach (['/' => 'home', '/env' => 'env', '/session' => 'session', '/server' => 'server', '/items/{id}' => 'item', '/broken' => 'broken', '/mode' => 'mode', '/zone' => 'zone', '/kill' => 'kill'] as $path => $action) {
            $routes->add($action, $path)->controller([$this, $action]);
        }
    }

    public function terminate(Request $request, Response $response): void
    {
        parent::terminate($request, $response);
        file_put_contents($this->getProjectDir() . '/var/terminated', $request->getPathInfo() . "\n", FILE_APPEND);
    }

    public function home(): Response
    {
        if (is_file($this->getProjectDir() . '/var/broken')) {
            throw new \RuntimeException('broken for a while');
        }
        date_default_timezone_set('Asia/Tokyo');

        return new Response('home of ' . $this->getContainer()->getParameter('greeting') . ' ' . ++self::$requests);
    }

    public function zone(): Response
    {
        return new Response(date_default_timezone_get());
    }

    public function env(): Response
    {
        return new Response(json_encode([$_ENV['GREETING'] ?? null, $_SERVER['GREETING'] ?? null, getenv('GREETING'), $_SERVER['APP_ENV'], $this->isDebug()]));
    }

    public function session(Request $request): Response
    {
        $session = $request->getSession();
        $session->set('n', $session->get('n', 0) + 1);
        $this->visitors[] = $request->getClientIp();

        return new Response($session->get('n') . ' of session, ' . count($this->visitors) . ' here');
    }

    public function server(): Response
    {
        $own = ['REMOTE_PORT' => 1, 'REQUEST_TIME' => 1, 'REQUEST_TIME_FLOAT' => 1];
        $server = array_diff_key($_SERVER, $own);
        ksort($server);
        $files = array_map(fn (string $f) => basename($f), array_slice(get_included_files(), 0, 1));

        return new Response(json_encode([$server, $files, getcwd(), ini_get('ignore_user_abort'), $_ENV], JSON_PRETTY_PRINT));
    }

    public function item(int $id): Response
    {
        return new Response("item $id");
    }

    public function mode(): Response
    {
        return new Response(\Howdah\mode() . ' 1');
    }

    public function kill(): Response
    {
        if (\Howdah\mode() === 'snapshot') {
            posix_kill(getmypid(), 9);
        }

        return new Response('alive');
    }

    public function broken(): Response
    {
        throw new \RuntimeException('broken on purpose');
    }
}
