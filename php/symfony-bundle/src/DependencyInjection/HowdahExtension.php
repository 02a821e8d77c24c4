<?php

declare(strict_types=1);

namespace Howdah\SymfonyBundle\DependencyInjection;

use Howdah\SymfonyBundle\Moments;
use Howdah\SymfonyBundle\ServerCollector;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Reference;

/** The bundle's services; it has no settings. */
final class HowdahExtension extends Extension
{
    /** Priority above every listener that does any work. */
    private const FIRST = 8192;

    /** @param array<mixed> $configs */
    public function load(array $configs, ContainerBuilder $container): void
    {
        $container->register('howdah.moments', Moments::class)
            ->addTag('kernel.event_listener', ['event' => 'kernel.request', 'method' => 'onRequest', 'priority' => self::FIRST]);
        $container->register('howdah.collector', ServerCollector::class)
            ->addArgument(new Reference('howdah.moments'))
            ->addTag('data_collector', ['id' => 'howdah', 'template' => '@Howdah/collector/howdah.html.twig', 'priority' => 1]);
    }
}
